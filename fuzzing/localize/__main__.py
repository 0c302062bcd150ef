"""`python -m fuzzing.localize SHARD.json [--method W ...] [--runs N] [--seconds S]`: where a case goes wrong.

The shard names one case and how it is run. Prints JSON lines on stdout:

    {"event": "fact", "what": METHOD, "found": [NAME, …], "how": TEXT, "runs": N, "confirmed": true | null}
    {"event": "end", "id": ID, "outcome": {…}, "facts": N, "runs": N, "seconds": S}

`fuzzing.localize.facts` describes facts. Errors are printed by `fuzzing.entry_point`. Exit codes:
0 after "end", 2 for a case that does not fail or an unknown method, 3 if the toolchain cannot be
started.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from fuzzing.cases import Corpus
from fuzzing.entry_point import emit_event, emit_event_now, note, run_main
from fuzzing.execute.shard import Shard
from fuzzing.localize.facts import Fact
from fuzzing.localize.localization import BUDGET, localize
from fuzzing.reduce.engine import Budget


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m fuzzing.localize", description="Find where in a compiler a failing case goes wrong."
    )
    parser.add_argument("shard", type=Path, help="a shard of one case, as JSON")
    parser.add_argument("--method", action="append", default=[], help="a method to use; default: all")
    parser.add_argument("--runs", type=int, default=BUDGET.runs, help="runs of the compiler at most")
    parser.add_argument("--seconds", type=float, default=BUDGET.seconds, help="seconds to take at most")
    given = parser.parse_args(arguments)

    def work() -> None:
        _run(Shard.read(given.shard), Budget(given.runs, given.seconds), given.method)

    return run_main(parser.prog, work)


def _run(shard: Shard, budget: Budget, methods: Sequence[str]) -> None:
    case = Corpus(shard.corpus).get(shard.case)
    begin = time.monotonic()

    def report(fact: Fact) -> None:
        emit_event_now(event="fact", **fact.to_json())
        note(f"{fact.what}: {', '.join(fact.found) or 'nothing'} ({fact.runs} runs)")

    found = localize(case, shard, budget=budget, methods=methods, progress=report)
    emit_event(
        event="end",
        id=case.id,
        outcome=found.outcome.to_json(),
        facts=len(found.facts),
        runs=found.runs,
        seconds=time.monotonic() - begin,
    )


if __name__ == "__main__":
    sys.exit(main())
