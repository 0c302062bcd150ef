"""Running: give every planned case an outcome at head, until the budget is spent.

Where sources were not collected to their end and there is time after what was planned, more is.
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
    """Reads the plan and the verdict cache; writes outcomes. A case whose verdict is cached is not run."""
    config, head, _ = load_environments(context)
    more = True
    while more:
        shard_options = ShardOptions(head, context.step.state.value, _budget(context, config))
        run_pending(context, config, shard_options)
        more = remaining_budget(context, shard_options) > 0 and planner.plan_more_cases(context, config) > 0
    with context.transaction() as (_, campaign):
        context.move(campaign, CampaignState.CONFIRMING)


def _budget(context: Context, config: Config) -> float:
    """What collecting has left of the budget, four fifths of it at least."""
    with context.reading() as (_, campaign):
        collecting = campaigns.seconds_spent(campaign, planner.COLLECTING)
    return config.budget - min(collecting, SHARE * config.budget)
