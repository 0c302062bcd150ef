"""`python -m fuzzing.localise SHARD.json [--way W ...] [--runs N] [--seconds S]`: where a case goes wrong.

The shard names one case and how it is run. Prints JSON lines on stdout:

    {"event": "fact", "what": WAY, "found": [NAME, …], "how": TEXT, "runs": N, "confirmed": true | null}
    {"event": "end", "id": ID, "outcome": {…}, "facts": N, "runs": N, "seconds": S}

What facts mean is told in `fuzzing.localise.facts`. Errors are told as `fuzzing.program` does. Exit codes:
0 after "end", 2 for a case that does not fail or a way that there is not, 3 if the toolchain cannot be
started.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from fuzzing.cases import Corpus
from fuzzing.execute.shard import Shard
from fuzzing.localise.facts import Fact
from fuzzing.localise.localisation import BUDGET, localise
from fuzzing.program import ended, event, event_now, note
from fuzzing.reduce.engine import Budget


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m fuzzing.localise", description="Tell where in a compiler a failing case goes wrong."
    )
    parser.add_argument("shard", type=Path, help="a shard of one case, as JSON")
    parser.add_argument("--way", action="append", default=[], help="a way to use; all, if none is named")
    parser.add_argument("--runs", type=int, default=BUDGET.runs, help="runs of the compiler at most")
    parser.add_argument("--seconds", type=float, default=BUDGET.seconds, help="seconds to take at most")
    given = parser.parse_args(arguments)

    def work() -> None:
        _run(Shard.read(given.shard), Budget(given.runs, given.seconds), given.way)

    return ended(parser.prog, work)


def _run(shard: Shard, budget: Budget, ways: Sequence[str]) -> None:
    case = Corpus(shard.corpus).get(shard.case)
    begin = time.monotonic()

    def told(fact: Fact) -> None:
        event_now(event="fact", **fact.to_json())
        note(f"{fact.what}: {', '.join(fact.found) or 'nothing'} ({fact.runs} runs)")

    found = localise(case, shard, budget=budget, ways=ways, progress=told)
    event(
        event="end",
        id=case.id,
        outcome=found.outcome.to_json(),
        facts=len(found.facts),
        runs=found.runs,
        seconds=time.monotonic() - begin,
    )


if __name__ == "__main__":
    sys.exit(main())
