"""Runs a command under a recorder and makes a corpus of its records."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter

from fuzzing.cases import TestCase
from fuzzing.errors import InternalError, UsageError
from fuzzing.execute.limits import Limits
from fuzzing.execute.reference_runner import ReferenceRunners, describe_failure
from fuzzing.migrate.recorders import base, injection, recording_file
from fuzzing.migrate.sources import Skip

#: Of one replay: what a library's own test calls takes milliseconds.
LIMITS = Limits(convert_s=20.0, compile_s=20.0, run_s=20.0)
_STDERR = 2  # standard output is for events
REPLAY_FAILURE = "the library itself fails when replayed"


@dataclass
class Recording:
    """The result of a command.

    items        distinct cases in the order of recording, and the skips between them
    exit_code    the command's; negative if a signal ended it
    processes    number of its processes that imported the library
    python       the interpreter of the first of them, which has the library
    command_s    seconds of the command
    recording_s  seconds of recording, all processes together
    """

    items: list[TestCase | Skip] = field(default_factory=list)
    bugs: list[recording_file.RecorderError] = field(default_factory=list)
    exit_code: int = 0
    processes: int = 0
    python: str = sys.executable
    command_s: float = 0.0
    recording_s: float = 0.0


def record(library: str, command: Sequence[str], cwd: Path | None = None) -> Recording:
    """Runs `command` to its end, recording `library`; its stdout goes to stderr.

    Raises UsageError if the command cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="assay-record-") as folder:
        given = {**os.environ, **getattr(base.get(library), "environment", {})}
        given.pop("PYTEST_CURRENT_TEST", None)  # of our caller; no test of the command's has begun
        environment = injection.make_environment(library, folder, given)
        begin = perf_counter()
        try:
            ended = subprocess.run(command, cwd=cwd, env=environment, stdout=_STDERR, check=False)
        except OSError as error:
            raise UsageError(f"cannot run {command[0]}: {error.strerror}") from error
        recorded = Recording(exit_code=ended.returncode, command_s=perf_counter() - begin)
        seen: set[bytes] = set()
        for path in sorted(Path(folder).glob(f"*{recording_file.SUFFIX}")):
            _read(path, recorded, seen)
    return recorded


def _read(path: Path, recorded: Recording, seen: set[bytes]) -> None:
    recorded.processes += 1
    spent = 0.0
    for item in recording_file.read(path):
        if isinstance(item, recording_file.ProcessStarted):
            recorded.python = item.python if recorded.processes == 1 else recorded.python
        elif isinstance(item, TestCase):
            key = base.instance_key(item)
            if key not in seen:
                recorded.items.append(item)
            seen.add(key)
        elif isinstance(item, recording_file.SkippedCall):
            recorded.items.append(Skip(item.test, item.reason, f"{item.api} {item.detail}".strip()))
        elif isinstance(item, recording_file.RecorderError):
            recorded.bugs.append(item)
        elif isinstance(item, recording_file.TimeSpent):
            spent = item.seconds
    recorded.recording_s += spent


def replay(recorded: Recording, corpus: Path) -> Iterator[TestCase | Skip]:
    """The recorded items, with skips for cases that their library does not run again.

    Each kind of program runs in its own library, in a sandboxed worker.
    """
    fails = _find_failures(
        [item for item in recorded.items if isinstance(item, TestCase)], corpus, recorded.python
    )
    for item in recorded.items:
        if isinstance(item, TestCase) and item.id in fails:
            yield Skip(item.provenance.test, REPLAY_FAILURE, f"{item.provenance.operator}: {fails[item.id]}")
        else:
            yield item


def _find_failures(cases: Sequence[TestCase], corpus: Path, python: str) -> dict[str, str]:
    """Why the library does not run a case, by the case's id; runnable ones are absent."""
    fails: dict[str, str] = {}
    for library, group in ReferenceRunners(corpus, python, LIMITS).groups(cases):
        for case_id, execution in library.run((case.id, case) for case in group):
            if execution.ending != "returned":
                fails[case_id] = describe_failure(library.backend.name, execution)
    return fails


def with_source(items: Iterable[TestCase | Skip], source: str) -> Iterator[TestCase | Skip]:
    """The items with `source` in their provenance."""
    for item in items:
        if isinstance(item, TestCase):
            yield replace(item, provenance=replace(item.provenance, source=source))
        else:
            yield item


def raise_recorder_errors(recorded: Recording) -> None:
    """Raises InternalError with the first bug of a recorder, if there was one."""
    if recorded.bugs:
        first = recorded.bugs[0]
        raise InternalError(
            f"{len(recorded.bugs)} calls broke the recorder, the first one {first.api} in {first.test}; "
            f"what else was recorded is kept.\n{first.traceback}"
        )
