"""Repeats: fresh-process runs of cases that an accusation may follow."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from bot.campaigns.context import Context
from bot.campaigns.services import Config
from bot.campaigns.shards import SHARD_CASES, Job, Run, execute, left
from bot.store import outcomes
from bot.store.campaigns import Session, chunks


def repeat(context: Context, config: Config, job: Job, cases: Sequence[str], runs: int = 0) -> None:
    """Sees that each of `cases` has `config.repeats` fresh runs at the job's place, budget permitting.

    Runs that another campaign made on the same toolchain count; after a kill only what is missing is run.

    runs   how many, where it is another number
    """
    wanted = runs or config.repeats
    lacking = _lacking(context, job, cases, wanted)
    if lacking and _reuse(context, job, lacking):
        lacking = _lacking(context, job, list(lacking), wanted)
    for count, group in _by_count(lacking).items():
        for chunk in chunks(group, SHARD_CASES):
            if left(context, job) <= 0:
                return
            fresh = replace(job, fresh=True, repeats=count)
            execute(context, config, fresh, chunk, _Numbered(context, job, lacking))


def _lacking(context: Context, job: Job, cases: Sequence[str], runs: int) -> dict[str, list[int]]:
    with context.reading() as (session, campaign):
        return outcomes.missing_repeats(session, campaign.id, job.place.side, cases, runs)


def _reuse(context: Context, job: Job, lacking: dict[str, list[int]]) -> bool:
    """Takes over what other campaigns ran; whether there was any. Only that is worth a commit."""
    with context.reading() as (session, campaign):
        there = outcomes.repeats_elsewhere(session, campaign.id, job.place.key, lacking)
    if there:
        with context.transaction() as (session, campaign):
            outcomes.record_repeats(session, campaign.id, job.place.side, there)
    return bool(there)


def _by_count(lacking: dict[str, list[int]]) -> dict[int, list[str]]:
    """Cases by how many runs they lack: a shard repeats all of its cases equally often."""
    groups: dict[int, list[str]] = defaultdict(list)
    for case_id, numbers in lacking.items():
        groups[len(numbers)].append(case_id)
    return groups


class _Numbered:
    """Writes runs under the numbers their cases lack."""

    def __init__(self, context: Context, job: Job, lacking: dict[str, list[int]]) -> None:
        self._context, self._side, self._lacking = context, job.place.side, lacking

    def __call__(self, session: Session, runs: Sequence[Run]) -> None:
        numbered = ((self._lacking[outcome.case][number], outcome) for number, outcome in runs)
        outcomes.record_repeats(session, self._context.campaign_id, self._side, numbered)
