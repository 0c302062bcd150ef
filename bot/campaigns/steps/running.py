"""Running: give every planned case an outcome at head, until the budget is spent."""

from __future__ import annotations

from bot.campaigns.context import Context
from bot.campaigns.registry import step
from bot.campaigns.shards import Job, places, run_pending
from bot.store.models import CampaignState


@step(CampaignState.RUNNING, to=(CampaignState.CONFIRMING,))
def run(context: Context) -> None:
    """Reads the plan and the verdict cache; writes outcomes. A case whose verdict is cached is not run."""
    config, head, _ = places(context)
    run_pending(context, config, Job(head, context.step.state.value, config.budget))
    with context.transaction() as (_, campaign):
        context.move(campaign, CampaignState.CONFIRMING)
