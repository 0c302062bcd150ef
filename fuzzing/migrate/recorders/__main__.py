"""`python -m fuzzing.migrate.recorders --library L --corpus DIR -- COMMAND…`: records a command's calls as
cases.

COMMAND runs unchanged, with a recorder in each of its Python processes; its stdout goes to stderr. Each
distinct case is then replayed in the library, and those that run are kept. Prints the events of
`python -m fuzzing.migrate`, with these fields in the end event:
    "command_exit": N, "processes": N, "seconds": {"command": s, "recording": s, "replay": s}
N is negative for a signal, `processes` counts those that imported the library, and `recording` is the time
spent serializing within the command. Exit codes: 0 done, whether tests pass or fail; 2 usage error; 3
infrastructure error.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from time import perf_counter

from fuzzing.cases import Corpus, TestCase
from fuzzing.entry_point import note, run_main
from fuzzing.migrate import __main__ as migration
from fuzzing.migrate.recorders import base, recording
from fuzzing.migrate.sources import Skip, Source


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m fuzzing.migrate.recorders", description="Make cases of what a command calls."
    )
    parser.add_argument(
        "--library", required=True, help="the library whose calls are recorded, such as torch"
    )
    parser.add_argument("--corpus", required=True, type=Path, help="the folder that keeps the cases")
    parser.add_argument("--cwd", type=Path, help="the folder the command runs in")
    parser.add_argument("--source", default="", help="what provenance names; collected-LIBRARY if not given")
    parser.add_argument("command", nargs="+", metavar="COMMAND", help="behind --, with its arguments")
    given = parser.parse_args(arguments)

    def work() -> None:
        base.get(given.library)
        source = given.source or f"{base.SOURCE}-{given.library}"
        _run(given.library, source, given.command, given.cwd, Corpus(given.corpus))

    return run_main(parser.prog, work)


def _run(library: str, source: str, command: Sequence[str], cwd: Path | None, corpus: Corpus) -> None:
    recorded = recording.record(library, command, cwd)
    note(f"{source}: the command ended with {recorded.exit_code} after {recorded.command_s:.1f} s")
    if not recorded.processes:
        note(
            f"{source}: no process of the command imported {library} where PYTHONPATH is obeyed, so nothing "
            "was recorded; `python -I` and `python -E` do not obey it"
        )
    replay_s = 0.0

    def migrate() -> Iterator[TestCase | Skip]:
        nonlocal replay_s
        begin = perf_counter()
        items = list(recording.replay(recorded, corpus.root))
        replay_s = perf_counter() - begin
        yield from recording.with_source(items, source)

    def closing() -> Mapping[str, object]:
        seconds = {"command": recorded.command_s, "recording": recorded.recording_s, "replay": replay_s}
        return {
            "command_exit": recorded.exit_code,
            "processes": recorded.processes,
            "seconds": {name: round(value, 3) for name, value in seconds.items()},
        }

    migration.run(Source(source, library, migrate), corpus, closing=closing)
    recording.raise_recorder_errors(recorded)


if __name__ == "__main__":
    sys.exit(main())
