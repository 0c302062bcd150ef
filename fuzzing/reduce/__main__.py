"""`python -m fuzzing.reduce SHARD.json [--runs N] [--seconds S] [--within S] [--journal FILE]…`

Reduces failing cases. The shard names them and how they are run; each has a journal, or none has. They are
reduced in order: the compiler and the library, which take longer to import than most candidates to run, are
imported once. The result of one case is confirmed in an interpreter of its own, those of several in processes
forked by one that ran no case; a campaign repeats each of them. `--passes
SHARD.json` names another toolchain, where the cases pass: then only candidates that pass there count, so that
a regression stays one. Prints JSON lines on stdout:

    {"event": "begin", "case": ID}                              each case, before its first run
    {"event": "step", "run": N, "by": PASS, "size": […]}        each candidate taken
    {"event": "other", "id": ID}                                another bug
    {"event": "end", "id": ID, "from": ID, "outcome": {…}, "minimal": …, "confirmed": …,
     "root": ID or null, "runs": N,
     "replayed": N, "before": […], "after": […], "words": […], "seconds": S, "traits": {…}}
    {"event": "unreducible", "case": ID, "reason": TEXT}        instead, if it does not fail or has no format

The reduced cases, and the others, are added to the shard's corpus before their "end". Errors are printed as
in `fuzzing.entry_point`; they belong to the case that has begun and not ended. Exit codes: 0 if no case is
left, or no time (`--within`), 2 for a shard that cannot be run, 3 if the toolchain cannot be started.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from fuzzing.cases import Corpus
from fuzzing.entry_point import emit_event, emit_event_now, note, run_main
from fuzzing.errors import UsageError
from fuzzing.execute.shard import Shard
from fuzzing.reduce.engine import Budget, Step
from fuzzing.reduce.formats import get_format
from fuzzing.reduce.reduction import Reducer


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m fuzzing.reduce", description="Make failing cases small.")
    parser.add_argument("shard", type=Path, help="a shard of the cases, as JSON")
    parser.add_argument("--runs", type=int, default=Budget.runs, help="candidates of one case to run at most")
    parser.add_argument("--seconds", type=float, default=Budget.seconds, help="seconds of one case at most")
    parser.add_argument("--within", type=float, help="seconds of all cases, after which no other one begins")
    parser.add_argument(
        "--journal",
        type=Path,
        action="append",
        default=[],
        help="file that remembers what candidates showed, one for each case in order",
    )
    parser.add_argument(
        "--passes", type=Path, help="a shard of the same cases where they pass: so must the small"
    )
    given = parser.parse_args(arguments)

    def work() -> None:
        passing = Shard.read(given.passes) if given.passes else None
        within = float("inf") if given.within is None else given.within
        run(Shard.read(given.shard), Budget(given.runs, given.seconds), given.journal, passing, within)

    return run_main(parser.prog, work)


def run(
    shard: Shard,
    budget: Budget,
    journals: Sequence[Path] = (),
    passing: Shard | None = None,
    within: float = float("inf"),
) -> None:
    """Reduces the shard's cases, printing events; the results must pass on `passing`.

    budget  of each case
    within  seconds, after which no other case begins
    """
    if journals and len(journals) != len(shard.cases):
        raise UsageError(f"{len(shard.cases)} cases need as many journals, not {len(journals)}")
    corpus, deadline = Corpus(shard.corpus), time.monotonic() + within
    several = len(shard.cases) > 1
    with Reducer(shard, budget, passing, set(_kinds(corpus, shard.cases)), forked=several) as reducer:
        for place, case_id in enumerate(shard.cases):
            left = deadline - time.monotonic()
            if left <= 0:
                return
            emit_event_now(event="begin", case=case_id)
            own = replace(budget, seconds=min(budget.seconds, left))
            try:
                _reduce(reducer, corpus, case_id, own, journals[place] if journals else None)
            except UsageError as error:
                emit_event_now(event="unreducible", case=case_id, reason=str(error))


def _kinds(corpus: Corpus, cases: Sequence[str]) -> Iterator[str]:
    """The kinds of the cases' programs; a case that cannot be read fails when it is its turn."""
    for case_id in cases:
        with contextlib.suppress(UsageError):
            yield corpus.get(case_id).program.kind


def _reduce(reducer: Reducer, corpus: Corpus, case_id: str, budget: Budget, journal: Path | None) -> None:
    begin, case = time.monotonic(), corpus.get(case_id)

    def report(step: Step) -> None:
        emit_event_now(event="step", run=step.run, by=step.by, size=step.size)
        note(f"{step.by}: size {step.size} after {step.run} runs")

    reduction = reducer.reduce(case, budget=budget, journal=journal, progress=report)
    for other in reduction.others:
        corpus.add(other)
        emit_event(event="other", id=other.id)
    corpus.add(reduction.case)
    if reduction.root is not None:
        corpus.add(reduction.root[0])
    emit_event_now(
        event="end",
        **{"from": case.id},
        id=reduction.case.id,
        outcome=reduction.outcome.to_json(),
        minimal=reduction.reduced.minimal,
        confirmed=reduction.confirmed,
        root=reduction.root and reduction.root[0].id,
        runs=reduction.reduced.runs,
        replayed=reduction.reduced.replayed,
        before=reduction.before,
        after=reduction.after,
        words=get_format(case.program.kind).words,
        seconds=time.monotonic() - begin,
        traits=asdict(reduction.traits),
    )


if __name__ == "__main__":
    sys.exit(main())
