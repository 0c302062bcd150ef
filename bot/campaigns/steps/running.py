"""Running: runs every planned case at head, until the budget is spent.

If sources are incomplete and time is left, more cases are collected. With a base, the first failures are
confirmed early, so that a check run names a regression long before the campaign ends.
"""

from __future__ import annotations

from bot.campaigns.context import Context
from bot.campaigns.plan import planner
from bot.campaigns.plan.collection import SHARE
from bot.campaigns.registry import step
from bot.campaigns.run.confirmation import confirm_first
from bot.campaigns.run.shards import (
    Environment,
    ShardOptions,
    load_environments,
    remaining_budget,
    run_pending,
)
from bot.campaigns.services import Config
from bot.store import campaigns, outcomes
from bot.store.models import CampaignState

#: Seconds of cases at head before a failure is confirmed: enough for the cases that the change touches. The
#: next one is confirmed after five times as many, and so on: each costs one more start of the compiler.
FIRST_CONFIRMED_AFTER_S, CONFIRMED_AGAIN = 10.0, 5.0


@step(CampaignState.RUNNING, to=(CampaignState.CONFIRMING,))
def run(context: Context) -> None:
    """Reads the plan and the verdict cache; writes outcomes. Cases with a cached verdict do not run."""
    config, head, base = load_environments(context)
    more = True
    while more:
        shard_options = ShardOptions(head, context.step.state.value, _budget(context, config))
        if base is not None:
            _confirm_early(context, config, shard_options, base)
        run_pending(context, config, shard_options)
        more = remaining_budget(context, shard_options) > 0 and planner.plan_more_cases(context, config) > 0
    with context.transaction() as (_, campaign):
        context.move(campaign, CampaignState.CONFIRMING)


def _confirm_early(context: Context, config: Config, options: ShardOptions, base: Environment) -> None:
    """Runs the plan but for the last part, and confirms a failure after each other one."""
    head, until = options.environment, FIRST_CONFIRMED_AFTER_S
    while until < options.budget:
        part = ShardOptions(head, options.step, until)
        if remaining_budget(context, part) > 0:  # else a former attempt at this step ran it
            run_pending(context, config, part)
            with context.reading() as (session, campaign):
                if not outcomes.pending(session, campaign.id, head.key, limit=1):
                    return
            confirm_first(context, config, head, base)
        until *= CONFIRMED_AGAIN


def _budget(context: Context, config: Config) -> float:
    """The budget less what collecting took, at least four fifths."""
    with context.reading() as (_, campaign):
        collecting = campaigns.seconds_spent(campaign, planner.COLLECTING)
    return config.budget - min(collecting, SHARE * config.budget)
