"""Keras' own tests, shipped in its wheel: their calls of layers, activations and operations.

The files below FOLDERS are run by pytest with the recorder inside (`fuzzing.migrate.keras_runner`), each in
its own process; test results do not matter, only the calls. Folders whose tests call no operator of their own
are left out: saving, training, optimizers, callbacks, metrics, distribution, export, applications, data sets,
and the other backends.
"""

from __future__ import annotations

import json
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

from fuzzing.cases import TestCase
from fuzzing.errors import InfrastructureError
from fuzzing.migrate import keras_runner
from fuzzing.migrate.recorders import recording
from fuzzing.migrate.recorders.base import instance_key
from fuzzing.migrate.source_parts import Selection
from fuzzing.migrate.sources import Skip, register_source

NAME = "keras-tests"
LIBRARY = "keras"
#: Below `keras/src`; everything in them that is called `…_test.py`.
FOLDERS = ("activations", "layers", "ops")
FILES_AT_ONCE = 48  # whose cases are replayed and yielded before the next: each lot imports Keras twice
_NEEDS = {"keras": "keras", "torch": "torch", "pytest": "pytest", "absl": "absl-py"}
#: What pytest's exit codes mean (its documentation, "Exit codes"): 0 and 1 mean that tests ran.
_RAN = (0, 1)
_NO_TESTS = 5


@register_source(NAME, library=LIBRARY, needs="torch pytest absl-py")
def migrate(part: Selection | None = None) -> Iterator[TestCase | Skip]:
    """Every distinct call of an operator in Keras' own tests, or in those of a part, that Keras repeats."""
    yield from record_files([file for file in test_files() if part is None or part.contains(file)])


def test_files() -> list[str]:
    """The test files, relative to where Keras is installed, sorted.

    Raises InfrastructureError where Keras, or what its tests need, is not installed.
    """
    missing = [package for module, package in _NEEDS.items() if find_spec(module) is None]
    if missing:
        raise InfrastructureError(
            f"{NAME} runs the tests of Keras, which need {', '.join(missing)}: "
            f"pip install {' '.join(missing)}"
        )
    spec = find_spec("keras")
    assert spec is not None
    assert spec.origin is not None
    package = Path(spec.origin).parent
    found = [path for folder in FOLDERS for path in (package / "src" / folder).rglob("*_test.py")]
    return sorted(path.relative_to(package.parent).as_posix() for path in found)


def record_files(files: Sequence[str]) -> Iterator[TestCase | Skip]:
    """The distinct cases and the skips of these files, file by file.

    Calls with the same parameters, types and shapes are one case.
    """
    seen: set[bytes] = set()
    left = iter(files)
    while lot := list(islice(left, FILES_AT_ONCE)):
        for item in _run_files(lot):
            if not isinstance(item, TestCase):
                yield item
            elif (key := instance_key(item)) not in seen:
                seen.add(key)
                yield item


def _run_files(files: Sequence[str]) -> Iterator[TestCase | Skip]:
    with tempfile.TemporaryDirectory(prefix="assay-keras-") as folder:
        report = Path(folder) / "report.jsonl"
        command = [sys.executable, "-P", keras_runner.__file__, str(report), *files]
        recorded = recording.record(LIBRARY, command, Path(folder))
        ran = [json.loads(line) for line in report.read_text().splitlines()] if report.exists() else []
        if not ran:
            raise InfrastructureError(
                f"{NAME}: the tests of Keras cannot be run: the runner ended with {recorded.exit_code}; "
                "its output is above"
            )
        yield from recording.with_source(recording.replay(recorded, Path(folder)), NAME)
    for file in ran:
        if (reason := failure_reason(file["exit"])) is not None:
            yield Skip(file["file"], reason, f"exit {file['exit']}, {file['cpu']} s of the processor")
    for name in files[len(ran) :]:
        yield Skip(name, "the run ended before this test file")
    recording.raise_recorder_errors(recorded)


def failure_reason(code: int | None) -> str | None:
    """Why a file's tests were not all run; None if they were."""
    if code is None or code == -signal.SIGXCPU:
        return "the test file ran out of time"
    if code < 0:
        return "the test file was ended by a signal"
    if code in _RAN:
        return None
    return "the test file holds no tests" if code == _NO_TESTS else "the test file cannot be imported"
