"""Planning: reads the configuration at head, collects sources, ranks cases, writes the plan."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import partial

from bot.campaigns.context import Context
from bot.campaigns.plan import planner
from bot.campaigns.plan.collection import FIRST_CASES_S, limit
from bot.campaigns.registry import step
from bot.campaigns.run.unchanged_compiler import end_unchanged, find_unchanged
from bot.campaigns.run_with_lease import run_with_lease
from bot.campaigns.services import Config
from bot.config import CONFIG_PATH
from bot.store import campaigns
from bot.store.models import Campaign, CampaignState

CONFIG_FILE = CONFIG_PATH
NOTHING_TO_TEST = (
    f"nothing to test: there is no {CONFIG_FILE}, and neither requirements.txt nor pyproject.toml "
    "pins a compiler that Assay knows"
)
_BRANCH = "refs/heads/"


@step(CampaignState.PLANNING, to=(CampaignState.PROVISIONING, CampaignState.DONE))
def plan(context: Context) -> None:
    """Reads the campaign; writes its configuration, then its cases."""
    with context.reading() as (_, campaign):
        pass
    config = _config(context, campaign)
    reason = NOTHING_TO_TEST if config is None else _unwatched_reason(context, campaign, config)
    if config is None or reason:
        with context.transaction() as (_, campaign):
            context.move(campaign, CampaignState.DONE, reason)
        return
    with context.transaction() as (_, campaign):  # it decides where a check run about an early end goes
        campaign.config = config.to_json()
    unchanged = find_unchanged(context, config, campaign)
    if unchanged is not None:  # seconds, where collecting cases takes a minute
        end_unchanged(context, campaign, unchanged, notes=())
        return
    seconds = limit(config.budget) - campaigns.seconds_spent(campaign, planner.COLLECTING)
    if context.services.sample is None:  # which is drawn from all cases, so none runs before they are there
        seconds = min(FIRST_CASES_S, seconds)
    change = planner.read_change(context)
    cases, accounts = planner.collect_cases(context, config, seconds, change)
    with (
        planner.rank_cases(context, config, cases, change) as (order, ranking),
        context.transaction() as (session, campaign),
    ):
        count = campaigns.write_plan(session, campaign.id, order.ids())
        campaign.plan = planner.plan_to_json(accounts, ranking)
        context.move(campaign, CampaignState.PROVISIONING)
    context.progress(count, count, f"{count} cases planned")


def _config(context: Context, campaign: Campaign) -> Config | None:
    """The configuration in force, with the overrides of whoever requested the campaign."""
    config = _configuration_at_head(context, campaign)
    if config is None or not campaign.overrides:
        return config
    return config.with_overrides(campaign.overrides)


def _configuration_at_head(context: Context, campaign: Campaign) -> Config | None:
    """The configuration given with the campaign, else the one at head, else the repository's default."""
    if campaign.config:
        return context.config(campaign)
    services = context.services
    read = partial(services.repositories.read, campaign.target, campaign.head)
    context.progress(0, 0, f"reading {campaign.target} at {campaign.head[:12]}")
    return run_with_lease(context, lambda *_: services.config_of(read))


def _unwatched_reason(context: Context, campaign: Campaign, config: Config) -> str | None:
    """Why this branch is not tested; None if it is, or if the campaign is not of a push."""
    if campaign.trigger != "push" or not campaign.ref.startswith(_BRANCH):
        return None
    branch = campaign.ref.removeprefix(_BRANCH)
    globs = config.branches
    if globs is None:
        globs = [
            run_with_lease(context, lambda *_: context.services.repositories.default_branch(campaign.target))
        ]
    if any(fnmatchcase(branch, glob) for glob in globs):
        return None
    return (
        f"the branch {branch} is not watched; `branches` in {CONFIG_FILE} says which are: {', '.join(globs)}"
    )
