"""What a recorded process leaves behind: a file of frames, appended to at each case, whole up to the last.

A frame (`fuzzing.execute.protocol`) tells of a case and has its files as the blob, or of a skip, or of a bug
of ours. Nothing is buffered in the process: what was recorded survives a crash of the test.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from fuzzing.cases import TestCase
from fuzzing.cases.case import case_from_manifest, parse_manifest
from fuzzing.execute import protocol

SUFFIX = ".recorded"
_CHUNK = 1 << 20
_MAX_BUGS = 20  # of one process: one shows what is wrong
_MANIFEST = "case.json"


class FrameSink:
    """Writes frames to a descriptor, each at once.

    library  the package whose own frames are no test's
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
        files = case.files()
        header = {"files": [[name, len(data)] for name, data in files.items()]}
        self._seconds += perf_counter() - begin
        self._write(header, b"".join(files.values()))

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
        """Notes what begins now, for whoever wants to know where a process died."""
        self._write({"mark": text})

    def spent(self, seconds: float) -> None:
        """Counts time that recording took; written down with the next frame."""
        self._seconds += seconds

    def test(self) -> str:
        """See `Sink.test`."""
        running = os.environ.get("PYTEST_CURRENT_TEST")
        if running:
            return running.rpartition(" (")[0]
        frame = sys._getframe(1)
        while frame.f_back and _root(frame.f_globals) in (self._library, "fuzzing"):
            frame = frame.f_back
        code = frame.f_code
        return f"{os.path.relpath(code.co_filename)}:{code.co_name}:{frame.f_lineno}"

    def _write(self, header: Mapping[str, Any], blob: bytes = b"") -> None:
        frame = protocol.pack({**header, "seconds": round(self._seconds, 6)}, blob)
        view = memoryview(frame)
        while view:
            view = view[os.write(self._descriptor, view) :]


class FileSink(FrameSink):
    """The sink of one process; a child that it forks writes a file of its own."""

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


def _root(names: Mapping[str, Any]) -> str:
    return str(names.get("__name__", "")).partition(".")[0]


# Reading ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Began:
    """A process has imported the library.

    python  its interpreter
    """

    python: str


@dataclass(frozen=True)
class Skipped:
    """A call that became no case."""

    api: str
    test: str
    reason: str
    detail: str


@dataclass(frozen=True)
class Bug:
    """An exception of a recorder's own."""

    api: str
    test: str
    traceback: str


@dataclass(frozen=True)
class Spent:
    """Seconds that recording has taken in this process so far."""

    seconds: float


@dataclass(frozen=True)
class Mark:
    """What `FrameSink.mark` noted."""

    text: str


Item = Began | TestCase | Skipped | Bug | Spent | Mark


def read(path: Path) -> Iterator[Item]:
    """What one process left, in its order; a frame that it died in is left out."""
    with path.open("rb") as file:
        yield from decode(iter(lambda: file.read(_CHUNK), b""))


def decode(chunks: Iterable[bytes]) -> Iterator[Item]:
    """The items in bytes that a FrameSink wrote, as they come."""
    reader = protocol.FrameReader()
    for data in chunks:
        for header, blob in reader.feed(data):
            yield from _item(header, blob)
            yield Spent(float(header["seconds"]))


def _item(header: Mapping[str, Any], blob: bytes) -> Iterator[Item]:
    if "files" in header:
        yield _case(header["files"], blob)
    elif "skip" in header:
        yield Skipped(header["skip"], header["test"], header["reason"], header["detail"])
    elif "bug" in header:
        yield Bug(header["bug"], header["test"], header["traceback"])
    elif "mark" in header:
        yield Mark(header["mark"])
    elif "python" in header:
        yield Began(header["python"])


def _case(sizes: Iterable[tuple[str, int]], blob: bytes) -> TestCase:
    files, offset = {}, 0
    for name, size in sizes:
        files[name] = blob[offset : offset + size]
        offset += size
    manifest = parse_manifest(files.pop(_MANIFEST))
    [program] = files.values()
    return case_from_manifest(manifest, program)
