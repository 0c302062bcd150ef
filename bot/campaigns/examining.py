"""Examining: what cases that nobody planned amount to, such as those that reductions leave.

They are run as planned ones are: at head, then at base where head accuses; what an accusation would rest on
is repeated in fresh processes on both sides.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bot.campaigns.context import Context
from bot.campaigns.judging import Judgement, Runs, Seen, judge
from bot.campaigns.repeating import repeat
from bot.campaigns.services import Config
from bot.campaigns.shards import Job, Place, execute, left, record
from bot.store import outcomes
from bot.store.models import Side
from fuzzing.outcomes import Outcome, Verdict


@dataclass(frozen=True)
class Examined:
    """A case that fails at head.

    head       what it did there, with the part of the compiler that is to blame
    judgement  what it amounts to beside base
    """

    case: str
    head: Outcome
    judgement: Judgement


def examine(
    context: Context, config: Config, head: Place, base: Place | None, cases: Iterable[str], budget: float
) -> dict[str, Examined]:
    """Runs what of `cases` was not run yet, charged to the present step; those that fail at head, by id.

    What the budget does not allow is missing, and what was not repeated is unjudged, as everywhere.
    """
    wanted = list(dict.fromkeys(cases))
    step = context.step.state.value
    _run(context, config, Job(head, step, budget), wanted)
    failing = [case for case, outcome in _known(context, head, wanted).items() if outcome.verdict.accuses]
    repeat(context, config, Job(head, step, budget, ablate=True), failing)
    if base is not None:
        at_base = Job(base, step, budget)
        _run(context, config, at_base, failing)
        passing = [
            c for c, outcome in _known(context, base, failing).items() if outcome.verdict is Verdict.PASS
        ]
        repeat(context, config, at_base, passing)
    seen = (_seen(context, config, head, base, case) for case in failing)
    return {one.head.case: Examined(one.head.case, one.head, found) for one in seen if (found := judge(one))}


def _run(context: Context, config: Config, job: Job, cases: list[str]) -> None:
    known = _known(context, job.place, cases)
    lacking = [case for case in cases if case not in known]
    if lacking and left(context, job) > 0:
        execute(context, config, job, lacking, lambda session, runs: record(context, session, runs))


def _known(context: Context, place: Place, cases: list[str]) -> dict[str, Outcome]:
    with context.reading() as (session, _):
        found = {case: outcomes.get(session, case, place.key) for case in cases}
    return {case: outcome for case, outcome in found.items() if outcome is not None}


def _seen(context: Context, config: Config, head: Place, base: Place | None, case: str) -> Seen:
    with context.reading() as (session, campaign):
        at_head = outcomes.get(session, case, head.key)
        assert at_head is not None
        runs = {
            place.side: Runs(
                *outcomes.agreement(session, campaign.id, place.side, place.key, case).get(case, (0, 0))
            )
            for place in (head, base)
            if place is not None
        }
        return Seen(
            head=outcomes.blamed(session, campaign.id, Side.HEAD, at_head),
            base=None if base is None else outcomes.get(session, case, base.key),
            head_runs=runs[Side.HEAD],
            base_runs=runs.get(Side.BASE, Runs()),
            repeats=config.repeats,
            compared=base is not None,
            again=tuple(outcomes.repeats(session, campaign.id, Side.HEAD, case)),
        )
