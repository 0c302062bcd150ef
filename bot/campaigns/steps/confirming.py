"""Confirming: repeats what fails at head and passes at base, in fresh processes on both sides.

A failure that base shows too needs no repeats. Without a base every failure is repeated.
"""

from __future__ import annotations

from hashlib import sha256
from heapq import nsmallest

from bot.campaigns.context import Context
from bot.campaigns.registry import step
from bot.campaigns.run.confirmation import ACCUSING, confirm_all, repeat_failures
from bot.campaigns.run.repeats import one_of_each_first, repeat
from bot.campaigns.run.shards import Environment, ShardOptions, load_environments
from bot.campaigns.services import Config
from bot.store import campaigns, outcomes
from bot.store.models import CampaignState
from fuzzing.outcomes import Verdict

#: Passing cases that are run again. With none of 8 differing, fewer than 31 % do (95 % of the time).
NOISE, NOISE_SHARE = 8, 0.1


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
    _measure_noise(context, config, head)
    with context.transaction() as (_, campaign):
        context.move(campaign, CampaignState.COMPARING)


def _measure_noise(context: Context, config: Config, head: Environment) -> None:
    """Reruns a few passing cases, within a tenth of the budget.

    Forked, as all but the first repeats of failures are: an interpreter's start takes longer than most cases.
    """
    present = context.step.state.value
    with context.reading() as (_, campaign):
        until = campaigns.seconds_spent(campaign, present) + NOISE_SHARE * config.budget
    shard_options = ShardOptions(head, present, min(config.budget, until), forked=True)
    repeat(context, config, shard_options, _sample(context, head), runs=1)


def _sample(context: Context, head: Environment) -> list[str]:
    """A few cases that pass at head, the same for each toolchain: the noise floor.

    The share of them with another verdict is the chance that a repeat differs by accident.
    """
    with context.reading() as (session, campaign):
        passing = outcomes.cases_with_verdict(session, campaign.id, head.key, (Verdict.PASS,))

    def drawn(case: str) -> bytes:
        return sha256(f"{head.key.toolchain}:{case}".encode()).digest()

    return nsmallest(NOISE, passing, key=drawn)
