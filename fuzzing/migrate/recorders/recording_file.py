"""The output of a recorded process: a file of frames, appended at each case, whole up to the last.

A frame (`fuzzing.execute.protocol`) is a case (program and values are the blob), a skip, or a recorder's bug.
Nothing is buffered in the process, so records survive a crash of the test.
"""

from __future__ import annotations

import functools
import os
import sys
import traceback
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from fuzzing.cases import Provenance, Recipe, TestCase, Tolerance
from fuzzing.cases.programs import get_kind
from fuzzing.execute import protocol

SUFFIX = ".recorded"
_CHUNK = 1 << 20
_MAX_BUGS = 20  # of one process: one shows what is wrong


class FrameSink:
    """Writes frames to a descriptor, each at once.

    library  the package whose own frames do not belong to a test
    """

    def __init__(self, descriptor: int, library: str) -> None:
        self._descriptor = descriptor
        self._library = library
        self._known: set[Hashable] = set()
        self._skipped: set[tuple[str, str]] = set()
        self._bugs = 0
        self._seconds = 0.0

    def new(self, key: Hashable) -> bool:
        """See `Sink.new`."""
        if key in self._known:
            return False
        self._known.add(key)
        return True

    def forget(self, key: Hashable) -> None:
        """See `Sink.forget`."""
        self._known.discard(key)

    def case(self, case: TestCase) -> None:
        """See `Sink.case`."""
        begin = perf_counter()
        header, blob = _pack_case(case)
        self._seconds += perf_counter() - begin
        self._write(header, blob)

    def skip(self, api: str, reason: str, detail: str = "") -> None:
        """See `Sink.skip`."""
        if (api, reason) not in self._skipped:
            self._skipped.add((api, reason))
            self._write({"skip": api, "reason": reason, "detail": detail[:300], "test": self.test()})

    def bug(self, api: str) -> None:
        """See `Sink.bug`."""
        self._bugs += 1
        if self._bugs <= _MAX_BUGS:
            self._write({"bug": api, "test": self.test(), "traceback": traceback.format_exc(limit=-8)})

    def mark(self, text: str) -> None:
        """Notes what begins now, to locate crashes."""
        self._write({"mark": text})

    def spent(self, seconds: float) -> None:
        """Counts recording time; written with the next frame."""
        self._seconds += seconds

    def test(self) -> str:
        """See `Sink.test`."""
        running = os.environ.get("PYTEST_CURRENT_TEST")
        if running:
            return running.rpartition(" (")[0]
        frame = sys._getframe(1)
        while frame.f_back and str(frame.f_globals.get("__name__", "")).partition(".")[0] in (
            self._library,
            "fuzzing",
        ):
            frame = frame.f_back
        code = frame.f_code
        return f"{_relative_path(code.co_filename)}:{code.co_name}:{frame.f_lineno}"

    def _write(self, header: Mapping[str, Any], blob: bytes = b"") -> None:
        frame = protocol.pack({**header, "seconds": round(self._seconds, 6)}, blob)
        view = memoryview(frame)
        while view:
            view = view[os.write(self._descriptor, view) :]


class FileSink(FrameSink):
    """The sink of one process; a forked child writes its own file."""

    def __init__(self, folder: Path | str, library: str) -> None:
        super().__init__(-1, library)
        self._folder = os.fspath(folder)
        self._open()
        os.register_at_fork(after_in_child=self._open)

    def _open(self) -> None:
        begun = f"{os.times().elapsed:.2f}".rjust(16, "0")  # file names in the order of their processes
        path = os.path.join(self._folder, f"{begun}-{os.getpid()}{SUFFIX}")  # noqa: PTH118 - as the worker
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._descriptor = os.open(path, flags, 0o600)
        self._write({"library": self._library, "python": sys.executable})


@functools.lru_cache(maxsize=256)
def _relative_path(filename: str) -> str:
    return os.path.relpath(filename)


# Reading ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ProcessStarted:
    """A process imported the library.

    python  its interpreter
    """

    python: str


@dataclass(frozen=True)
class SkippedCall:
    """A call that became no case."""

    api: str
    test: str
    reason: str
    detail: str


@dataclass(frozen=True)
class RecorderError:
    """An exception of a recorder."""

    api: str
    test: str
    traceback: str


@dataclass(frozen=True)
class TimeSpent:
    """Seconds of recording in this process so far."""

    seconds: float


@dataclass(frozen=True)
class Mark:
    """A note by `FrameSink.mark`."""

    text: str


Item = ProcessStarted | TestCase | SkippedCall | RecorderError | TimeSpent | Mark


def read(path: Path) -> Iterator[Item]:
    """The items of one process, in order, without a truncated last frame."""
    with path.open("rb") as file:
        yield from decode(iter(lambda: file.read(_CHUNK), b""))


def read_headers(path: Path) -> Iterator[Mapping[str, Any]]:
    """The frames' headers alone, which is quick."""
    reader = protocol.FrameReader()
    with path.open("rb") as file:
        while data := file.read(_CHUNK):
            yield from (header for header, _ in reader.feed(data))


def decode(chunks: Iterable[bytes]) -> Iterator[Item]:
    """The items in a FrameSink's bytes, lazily."""
    reader = protocol.FrameReader()
    for data in chunks:
        for header, blob in reader.feed(data):
            yield from _item(header, blob)
            yield TimeSpent(float(header["seconds"]))


def _item(header: Mapping[str, Any], blob: bytes) -> Iterator[Item]:
    if "case" in header:
        yield _unpack_case(header["case"], blob)
    elif "skip" in header:
        yield SkippedCall(header["skip"], header["test"], header["reason"], header["detail"])
    elif "bug" in header:
        yield RecorderError(header["bug"], header["test"], header["traceback"])
    elif "mark" in header:
        yield Mark(header["mark"])
    elif "python" in header:
        yield ProcessStarted(header["python"])


# Cases, quickly: neither hashed nor spelled out while the test waits ------------------------------------


def _pack_case(case: TestCase) -> tuple[protocol.Header, bytes]:
    program = case.program.to_bytes()
    plain = [(name, value) for name, value in case.inputs if not isinstance(value, Recipe)]
    size, values = protocol.encode_values([*plain, *(case.expected or ())])
    fields = {
        "kind": case.program.kind,
        "program": len(program),
        "inputs": [
            [name, value.to_json() if isinstance(value, Recipe) else None] for name, value in case.inputs
        ],
        "values": size,
        "expected": None if case.expected is None else len(case.expected),
        "tolerance": case.tolerance and [case.tolerance.rtol, case.tolerance.atol],
        "comparison": case.comparison,
        "provenance": vars(case.provenance),
    }
    return {"case": fields}, program + values


def _unpack_case(fields: Mapping[str, Any], blob: bytes) -> TestCase:
    size = fields["program"]
    values = protocol.decode_values(fields["values"], blob[size:])
    cut = len(values) - (fields["expected"] or 0)
    plain = dict(values[:cut])
    return TestCase(
        program=get_kind(fields["kind"]).from_bytes(blob[:size]),
        inputs=tuple(
            (name, plain[name] if recipe is None else Recipe.from_json(recipe))
            for name, recipe in fields["inputs"]
        ),
        provenance=Provenance(**fields["provenance"]),
        expected=None if fields["expected"] is None else tuple(values[cut:]),
        tolerance=fields["tolerance"] and Tolerance(*fields["tolerance"]),
        comparison=fields["comparison"],
    )
