"""Running: runs every planned case at head, until the budget is spent.

If sources are incomplete and time is left, more cases are collected.
"""

from __future__ import annotations

from bot.campaigns.context import Context
from bot.campaigns.plan import planner
from bot.campaigns.plan.collection import SHARE
from bot.campaigns.registry import step
from bot.campaigns.run.shards import ShardOptions, load_environments, remaining_budget, run_pending
from bot.campaigns.services import Config
from bot.store import campaigns
from bot.store.models import CampaignState


@step(CampaignState.RUNNING, to=(CampaignState.CONFIRMING,))
def run(context: Context) -> None:
    """Reads the plan and the verdict cache; writes outcomes. Cases with a cached verdict do not run."""
    config, head, _ = load_environments(context)
    more = True
    while more:
        shard_options = ShardOptions(head, context.step.state.value, _budget(context, config))
        run_pending(context, config, shard_options)
        more = remaining_budget(context, shard_options) > 0 and planner.plan_more_cases(context, config) > 0
    with context.transaction() as (_, campaign):
        context.move(campaign, CampaignState.CONFIRMING)


def _budget(context: Context, config: Config) -> float:
    """The budget less what collecting took, at least four fifths."""
    with context.reading() as (_, campaign):
        collecting = campaigns.seconds_spent(campaign, planner.COLLECTING)
    return config.budget - min(collecting, SHARE * config.budget)
