"""Fresh-process runs of failing cases."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from bot.campaigns.classify.changes import describe_change, is_steady
from bot.campaigns.context import Context
from bot.campaigns.provenance import origin
from bot.campaigns.run.shards import (
    SHARD_CASES,
    Environment,
    Run,
    ShardOptions,
    load_outcomes,
    remaining_budget,
    run_shard,
)
from bot.campaigns.services import Config
from bot.store import outcomes
from bot.store.campaigns import Session, chunks
from bot.store.models import Side
from fuzzing.outcomes import Outcome


def repeat(
    context: Context, config: Config, shard_options: ShardOptions, cases: Sequence[str], runs: int = 0
) -> None:
    """Runs each case until it has `config.repeats` fresh runs, within the budget.

    Runs of other campaigns on the same toolchain count; after a kill only missing ones run.

    runs   another number than `config.repeats`
    """
    wanted = runs or config.repeats
    missing = _missing_repeats(context, shard_options, cases, wanted)
    if missing and _reuse(context, shard_options, missing):
        missing = _missing_repeats(context, shard_options, list(missing), wanted)
    for count, group in _by_count(missing).items():
        for chunk in chunks(group, SHARD_CASES):
            if remaining_budget(context, shard_options) <= 0:
                return
            fresh = replace(shard_options, fresh=True, repeats=count)
            run_shard(context, config, fresh, chunk, _RepeatWriter(context, shard_options, missing))


def one_of_each_first(context: Context, environment: Environment, cases: Sequence[str]) -> list[str]:
    """The failing cases, one of each signature before others: what the budget allows shows most bugs."""
    seen = load_outcomes(context, environment, list(cases))
    return first_of_each({case: signature_key(context, seen[case]) for case in cases if case in seen})


def one_of_each(context: Context, failures: Iterable[Outcome]) -> frozenset[str]:
    """The first case of each signature."""
    return _firsts({outcome.case: signature_key(context, outcome) for outcome in failures})


def first_of_each(keys: Mapping[str, str]) -> list[str]:
    """The items of a mapping, the first one with each value before others; order is kept otherwise."""
    leading = _firsts(keys)
    return [item for item in keys if item in leading] + [item for item in keys if item not in leading]


def _firsts(keys: Mapping[str, str]) -> frozenset[str]:
    """The first item with each value."""
    return frozenset({key: item for item, key in reversed(list(keys.items()))}.values())


def growing_groups(cases: Sequence[str], first: int) -> Iterator[list[str]]:
    """The cases in order, in groups of `first`, then twice as many each time: a shard costs its start."""
    remaining, size = iter(cases), first
    while group := list(islice(remaining, size)):
        yield group
        size *= 2


def signature_key(context: Context, outcome: Outcome) -> str:
    """The key of the signature of a case that is not reduced."""
    case_origin = origin(context.corpus, outcome.case)
    return context.services.sign(outcome, case_origin.subject, case_origin.frontend).key


def repeated_change(
    session: Session, campaign_id: int, repeats: int, at_head: Outcome, at_base: Outcome | None
) -> str:
    """How head differs from base beside the verdict, "" if it does not in `repeats` fresh runs of both."""
    if at_base is None or not (change := describe_change(at_head, at_base)):
        return ""
    sides = ((Side.HEAD, at_head), (Side.BASE, at_base))
    steady = all(
        is_steady(first, outcomes.repeats(session, campaign_id, side, first.case), repeats)
        for side, first in sides
    )
    return change if steady else ""


def _missing_repeats(
    context: Context, shard_options: ShardOptions, cases: Sequence[str], runs: int
) -> dict[str, list[int]]:
    with context.reading() as (session, campaign):
        return outcomes.missing_repeats(session, campaign.id, shard_options.environment.side, cases, runs)


def _reuse(context: Context, shard_options: ShardOptions, missing: dict[str, list[int]]) -> bool:
    """Copies runs of other campaigns; whether there were any, as only then a commit is needed."""
    with context.reading() as (session, campaign):
        there = outcomes.repeats_of_other_campaigns(
            session, campaign.id, shard_options.environment.key, missing
        )
    if there:
        with context.transaction() as (session, campaign):
            outcomes.record_repeats(session, campaign.id, shard_options.environment.side, there)
    return bool(there)


def _by_count(missing: dict[str, list[int]]) -> dict[int, list[str]]:
    """Cases by number of missing runs: a shard repeats all its cases equally often."""
    groups: dict[int, list[str]] = defaultdict(list)
    for case_id, numbers in missing.items():
        groups[len(numbers)].append(case_id)
    return groups


class _RepeatWriter:
    def __init__(self, context: Context, shard_options: ShardOptions, missing: dict[str, list[int]]) -> None:
        self._context, self._side, self._missing_repeats = context, shard_options.environment.side, missing

    def __call__(self, session: Session, runs: Sequence[Run]) -> None:
        numbered = ((self._missing_repeats[outcome.case][number], outcome) for number, outcome in runs)
        outcomes.record_repeats(session, self._context.campaign_id, self._side, numbered)
