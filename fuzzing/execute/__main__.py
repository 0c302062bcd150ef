"""A shard: cases for one toolchain, run in a process of their own.

`python -m fuzzing.execute SHARD.json` prints events as JSON lines on stdout:

    {"event": "start", "cases": N}
    {"event": "outcome", "repeat": R, "outcome": {…}}            in the order of decisions
    {"event": "end", "outcomes": N, "respawns": R, "seconds": S, "busy": B, "stopped": "" | "budget",
     "versions": {…}, "cached": {"references": N}, "phases": {phase: seconds}}

Errors are printed as in `fuzzing.entry_point`. Exit codes: 0 after "end", 2 for a bad shard, 3 if the
toolchain cannot be started. A case whose files are corrupt, or that fails in its own library, has the outcome
invalid.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from fuzzing.entry_point import emit_event_now, run_main
from fuzzing.errors import UsageError
from fuzzing.execute.shard import Shard
from fuzzing.execute.shard_run import ShardRun


def run_shard(shard: Shard) -> None:
    """Runs `shard` and prints its events, flushed: after a crash, cases without an event are run again."""
    run = ShardRun(shard)
    emit_event_now(event="start", cases=len(shard.cases))
    begin = time.monotonic()
    count = 0
    for repeat, outcome in run.outcomes():
        emit_event_now(event="outcome", repeat=repeat, outcome=outcome.to_json())
        count += 1
    emit_event_now(
        event="end",
        outcomes=count,
        respawns=run.supervisor.respawns,
        seconds=time.monotonic() - begin,
        busy=run.supervisor.busy_s,
        stopped=run.stopped,
        versions=run.supervisor.versions,
        cached={"references": run.references.cached},
        phases=dict(run.phases),
    )


def main(arguments: Sequence[str]) -> int:
    """The command line of the module."""

    def work() -> None:
        if len(arguments) != 1:
            raise UsageError("usage: python -m fuzzing.execute SHARD.json")
        run_shard(Shard.read(Path(arguments[0])))

    return run_main("python -m fuzzing.execute", work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
