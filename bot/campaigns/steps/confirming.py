"""Confirming: what failed at head and passes at base is repeated in fresh processes, on both sides.

Repeats are spent where an accusation would follow (DESIGN 5): what base fails too accuses nobody here, and
one ordinary run says so. Without a base every failure is repeated, for that is all there is to say.
"""

from __future__ import annotations

from bot.campaigns.context import Context
from bot.campaigns.registry import step
from bot.campaigns.repeating import repeat
from bot.campaigns.services import Config
from bot.campaigns.shards import Job, Place, places, run_pending
from bot.store import outcomes
from bot.store.models import CampaignState
from fuzzing.outcomes import Verdict

ACCUSING = tuple(verdict for verdict in Verdict if verdict.accuses)


@step(CampaignState.CONFIRMING, to=(CampaignState.COMPARING,))
def confirm(context: Context) -> None:
    """Reads the accusing outcomes at head; writes base's outcomes of the same cases, and repeats.

    The repeats at head also look for the part of the compiler that is to blame.

    A head on which everything fails must not cost hours of fresh processes: the step has a budget of its
    own, as large as the head's; what is not repeated within it stays unjudged.
    """
    config, head, base = places(context)
    at_head = Job(head, context.step.state.value, config.budget, ablate=True)
    if base is None:
        with context.reading() as (session, campaign):
            repeat(context, config, at_head, outcomes.having(session, campaign.id, head.key, ACCUSING))
    else:
        at_base = Job(base, context.step.state.value, config.budget)
        run_pending(context, config, at_base, head.key, ACCUSING)
        repeat(context, config, at_head, _accused(context, head, base))
        repeat(context, config, at_base, _confirmed(context, config, head, base))
    with context.transaction() as (_, campaign):
        context.move(campaign, CampaignState.COMPARING)


def _accused(context: Context, head: Place, base: Place) -> list[str]:
    """The cases that fail at head and pass at base."""
    with context.reading() as (session, campaign):
        return [
            at_head.case
            for at_head, at_base in outcomes.pairs(session, campaign.id, head.key, base.key)
            if at_head.verdict.accuses and at_base is not None and at_base.verdict is Verdict.PASS
        ]


def _confirmed(context: Context, config: Config, head: Place, base: Place) -> list[str]:
    """Those of them that failed alike in every fresh run at head."""
    accused = _accused(context, head, base)
    with context.reading() as (session, campaign):
        runs = outcomes.agreement(session, campaign.id, head.side, head.key)
    return [case for case in accused if config.repeats <= runs.get(case, (0, 0))[1] == runs[case][0]]
