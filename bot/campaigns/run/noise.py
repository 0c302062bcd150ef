"""The noise floor: how often a case that passes gives another verdict when it is repeated.

It is the chance that a repeat differs by accident, so it is measured where repeats accuse somebody.
"""

from __future__ import annotations

from hashlib import sha256
from heapq import nsmallest

from bot.campaigns.context import Context
from bot.campaigns.run.repeats import repeat
from bot.campaigns.run.shards import Environment, ShardOptions
from bot.campaigns.services import Config
from bot.store import campaigns, outcomes
from fuzzing.outcomes import Verdict

#: Passing cases that are run again. With none of 8 differing, fewer than 31 % do (95 % of the time).
NOISE, NOISE_SHARE = 8, 0.1


def measure_noise(context: Context, config: Config, head: Environment) -> None:
    """Reruns a few passing cases, within a tenth of the budget, if any case was repeated at head.

    In one worker: with several each would start an interpreter, which takes longer than most cases.
    """
    present = context.step.state.value
    with context.reading() as (session, campaign):
        if not outcomes.agreement(session, campaign.id, head.side, head.key):
            return
        until = campaigns.seconds_spent(campaign, present) + NOISE_SHARE * config.budget
    shard_options = ShardOptions(head, present, min(config.budget, until), alone=True)
    repeat(context, config, shard_options, _sample(context, head), runs=1)


def _sample(context: Context, head: Environment) -> list[str]:
    """A few cases that pass at head, the same for each toolchain."""
    with context.reading() as (session, campaign):
        passing = outcomes.cases_with_verdict(session, campaign.id, head.key, (Verdict.PASS,))

    def drawn(case: str) -> bytes:
        return sha256(f"{head.key.toolchain}:{case}".encode()).digest()

    return nsmallest(NOISE, passing, key=drawn)
