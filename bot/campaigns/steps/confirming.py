"""Confirming: repeats what fails at head and passes at base, in fresh processes on both sides.

A failure that base shows too needs no repeats. Without a base every failure is repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from heapq import nsmallest

from bot.campaigns.classify.resource_failures import RETRY_LIMIT_FACTOR, needs_rerun
from bot.campaigns.context import Context
from bot.campaigns.registry import step
from bot.campaigns.run.repeats import growing_groups, one_of_each_first, repeat
from bot.campaigns.run.shards import Environment, ShardOptions, load_environments, load_outcomes, run_pending
from bot.campaigns.services import Config
from bot.store import campaigns, outcomes
from bot.store.models import CampaignState
from fuzzing.outcomes import Verdict

#: Passing cases that are run again. With none of 8 differing, fewer than 31 % do (95 % of the time).
NOISE, NOISE_SHARE = 8, 0.1
ACCUSING = tuple(verdict for verdict in Verdict if verdict.is_failure)


@step(CampaignState.CONFIRMING, to=(CampaignState.COMPARING,))
def confirm(context: Context) -> None:
    """Reads failing outcomes at head; writes base's outcomes of the same cases, and repeats.

    Repeats at head also look for the component at fault. The step has a budget of its own, as large as
    head's, so a head on which everything fails does not cost hours; what is not repeated stays inconclusive.
    Both sides of a few cases are repeated before further cases: half of the evidence accuses nobody.
    """
    config, head, base = load_environments(context)
    at_head = ShardOptions(head, context.step.state.value, config.budget, ablate=True)
    if base is None:
        with context.reading() as (session, campaign):
            accused = outcomes.cases_with_verdict(session, campaign.id, head.key, ACCUSING)
        _repeat(context, config, at_head, one_of_each_first(context, head, accused))
    else:
        at_base = ShardOptions(base, context.step.state.value, config.budget)
        run_pending(context, config, at_base, head.key, ACCUSING)
        regressed = one_of_each_first(context, head, _regressed_cases(context, head, base))
        for group in growing_groups(regressed, context.settings.workers):
            _repeat(context, config, at_head, group)
            repeat(context, config, at_base, _confirmed_cases(context, config, head, group))
    _measure_noise(context, config, head)
    with context.transaction() as (_, campaign):
        context.move(campaign, CampaignState.COMPARING)


def _repeat(context: Context, config: Config, shard_options: ShardOptions, cases: list[str]) -> None:
    """Repeats failures at head.

    Hangs and out-of-memory failures run alone first, with higher limits; those that pass are not repeated.
    """
    suspicious = [
        case
        for case, outcome in load_outcomes(context, shard_options.environment, cases).items()
        if needs_rerun(outcome)
    ]
    repeat(context, config, replace(shard_options, limit_factor=RETRY_LIMIT_FACTOR), suspicious, runs=1)
    with context.reading() as (session, campaign):
        runs = outcomes.agreement(
            session, campaign.id, shard_options.environment.side, shard_options.environment.key
        )
    reproduced = [case for case in cases if case not in suspicious or runs.get(case) == (1, 1)]
    repeat(context, config, shard_options, reproduced)


def _measure_noise(context: Context, config: Config, head: Environment) -> None:
    """Reruns a few passing cases, within a tenth of the budget."""
    present = context.step.state.value
    with context.reading() as (_, campaign):
        until = campaigns.seconds_spent(campaign, present) + NOISE_SHARE * config.budget
    shard_options = ShardOptions(head, present, min(config.budget, until))
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


def _regressed_cases(context: Context, head: Environment, base: Environment) -> list[str]:
    """The cases that fail at head and pass at base."""
    with context.reading() as (session, campaign):
        return [
            at_head.case
            for at_head, at_base in outcomes.outcome_pairs(session, campaign.id, head.key, base.key)
            if at_head.verdict.is_failure and at_base is not None and at_base.verdict is Verdict.PASS
        ]


def _confirmed_cases(
    context: Context, config: Config, head: Environment, accused: Sequence[str]
) -> list[str]:
    """Those that failed alike in every fresh run at head."""
    with context.reading() as (session, campaign):
        runs = outcomes.agreement(session, campaign.id, head.side, head.key)
    return [case for case in accused if config.repeats <= runs.get(case, (0, 0))[1] == runs[case][0]]
