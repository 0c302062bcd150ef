"""Confirming: repeats what fails at head and passes at base, in fresh processes on both sides.

A failure that base shows too needs no repeats. Without a base every failure is repeated.
"""

from __future__ import annotations

from bot.campaigns.context import Context
from bot.campaigns.registry import step
from bot.campaigns.run.confirmation import ACCUSING, confirm_all, repeat_failures
from bot.campaigns.run.noise import measure_noise
from bot.campaigns.run.repeats import one_of_each_first
from bot.campaigns.run.shards import load_environments
from bot.store import outcomes
from bot.store.models import CampaignState


@step(CampaignState.CONFIRMING, to=(CampaignState.COMPARING,))
def confirm(context: Context) -> None:
    """Reads failing outcomes at head; writes base's outcomes of the same cases, and repeats.

    The step has a budget of its own, as large as head's, so a head on which everything fails does not cost
    hours; what is not repeated stays inconclusive.
    """
    config, head, base = load_environments(context)
    if base is None:
        with context.reading() as (session, campaign):
            accused = outcomes.cases_with_verdict(session, campaign.id, head.key, ACCUSING)
        repeat_failures(context, config, head, one_of_each_first(context, head, accused))
    else:
        confirm_all(context, config, head, base)
    measure_noise(context, config, head)
    with context.transaction() as (_, campaign):
        context.move(campaign, CampaignState.COMPARING)
