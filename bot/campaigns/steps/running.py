"""Running: give every planned case an outcome at head, until the budget is spent.

Where sources were not collected to their end and there is time after what was planned, more is.
"""

from __future__ import annotations

from bot.campaigns import plans
from bot.campaigns.collecting import SHARE
from bot.campaigns.context import Context
from bot.campaigns.registry import step
from bot.campaigns.services import Config
from bot.campaigns.shards import Job, left, places, run_pending
from bot.store import campaigns
from bot.store.models import CampaignState


@step(CampaignState.RUNNING, to=(CampaignState.CONFIRMING,))
def run(context: Context) -> None:
    """Reads the plan and the verdict cache; writes outcomes. A case whose verdict is cached is not run."""
    config, head, _ = places(context)
    more = True
    while more:
        job = Job(head, context.step.state.value, _budget(context, config))
        run_pending(context, config, job)
        more = left(context, job) > 0 and plans.extend(context, config) > 0
    with context.transaction() as (_, campaign):
        context.move(campaign, CampaignState.CONFIRMING)


def _budget(context: Context, config: Config) -> float:
    """What collecting has left of the budget, four fifths of it at least."""
    with context.reading() as (_, campaign):
        collecting = campaigns.spent(campaign, plans.COLLECTING)
    return config.budget - min(collecting, SHARE * config.budget)
