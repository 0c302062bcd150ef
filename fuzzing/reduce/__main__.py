"""`python -m fuzzing.reduce SHARD.json [--runs N] [--seconds S] [--journal FILE]`: reduces a failing case.

The shard names one case and how it is run. `--passes SHARD.json` names it on another toolchain, where it
passes: then only candidates that pass there count, so that a regression stays one. Prints JSON lines on
stdout:

    {"event": "step", "run": N, "by": PASS, "size": […]}        each candidate taken
    {"event": "other", "id": ID}                                another bug
    {"event": "end", "id": ID, "from": ID, "outcome": {…}, "minimal": …, "confirmed": …,
     "root": ID or null, "runs": N,
     "replayed": N, "before": […], "after": […], "words": […], "seconds": S, "traits": {…}}

The reduced case, and the others, are added to the shard's corpus. Errors are printed as in
`fuzzing.entry_point`. Exit codes: 0 after "end", 2 for a case that does not fail or cannot be reduced, 3 if
the toolchain cannot be started.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from fuzzing.cases import Corpus
from fuzzing.entry_point import emit_event, emit_event_now, note, run_main
from fuzzing.execute.shard import Shard
from fuzzing.reduce.engine import Budget, Step
from fuzzing.reduce.formats import get_format
from fuzzing.reduce.reduction import reduce_case


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m fuzzing.reduce", description="Make a failing case small."
    )
    parser.add_argument("shard", type=Path, help="a shard of one case, as JSON")
    parser.add_argument("--runs", type=int, default=Budget.runs, help="candidates to run at most")
    parser.add_argument("--seconds", type=float, default=Budget.seconds, help="seconds to take at most")
    parser.add_argument("--journal", type=Path, help="file that remembers what candidates showed")
    parser.add_argument(
        "--passes", type=Path, help="a shard of the same case where it passes: so must the small"
    )
    given = parser.parse_args(arguments)

    def work() -> None:
        passing = Shard.read(given.passes) if given.passes else None
        run(Shard.read(given.shard), Budget(given.runs, given.seconds), given.journal, passing)

    return run_main(parser.prog, work)


def run(shard: Shard, budget: Budget, journal: Path | None, passing: Shard | None = None) -> None:
    """Reduces the shard's case, printing events; the result must pass on `passing`."""
    corpus = Corpus(shard.corpus)
    case = corpus.get(shard.case)
    begin = time.monotonic()

    def report(step: Step) -> None:
        emit_event_now(event="step", run=step.run, by=step.by, size=step.size)
        note(f"{step.by}: size {step.size} after {step.run} runs")

    reduction = reduce_case(case, shard, budget=budget, journal=journal, progress=report, passing=passing)
    for other in reduction.others:
        corpus.add(other)
        emit_event(event="other", id=other.id)
    corpus.add(reduction.case)
    if reduction.root is not None:
        corpus.add(reduction.root[0])
    emit_event(
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
