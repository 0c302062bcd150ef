"""Confirming: repeat what accuses the compiler in fresh processes, before anything is made of it."""

from __future__ import annotations

from bot.campaigns.context import Context
from bot.campaigns.registry import step
from bot.campaigns.repeating import repeat
from bot.campaigns.shards import Job, places
from bot.store import outcomes
from bot.store.models import CampaignState
from fuzzing.outcomes import Verdict

ACCUSING = tuple(verdict for verdict in Verdict if verdict.accuses)


@step(CampaignState.CONFIRMING, to=(CampaignState.COMPARING,))
def confirm(context: Context) -> None:
    """Reads the accusing outcomes at head; writes repeats.

    A head on which everything fails must not cost hours of fresh processes: the step has a budget of its
    own, as large as the head's; what is not repeated within it stays unjudged.
    """
    config, head, _ = places(context)
    with context.reading() as (session, campaign):
        accused = outcomes.having(session, campaign.id, head.key, ACCUSING)
    repeat(context, config, Job(head, context.step.state.value, config.budget), accused)
    with context.transaction() as (_, campaign):
        context.move(campaign, CampaignState.COMPARING)
