"""Records which lines of a Python package run in a block."""

from __future__ import annotations

import dis
import importlib.util
import os
import re
import sys
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any, Dict, Iterable, Iterator, List, Optional, Set, Tuple

from fuzzing.backends.base import LINES, Instrumentation

#: A line or a range of lines; no file has a million.
_RANGE = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?")


@contextmanager
def note_lines(
    instrumentation: Instrumentation, package: str, folders: Tuple[str, ...] = ()
) -> Iterator[None]:
    """Notes the lines of a package that run in the block, on this thread: one note for each file.

    folders  of the package, to note their lines only
    """
    found = importlib.util.find_spec(package) if instrumentation.coverage else None
    if found is None or not found.submodule_search_locations:
        yield
        return
    root = os.path.join(found.submodule_search_locations[0], "")  # noqa: PTH118 - as frames do
    recorder = _Recorder(root, folders)
    before = sys.gettrace()
    sys.settrace(recorder.enter)
    try:
        yield
    finally:
        sys.settrace(before)
        for path, lines in recorder.by_file():
            instrumentation.note(LINES, format_lines(path, lines))


def format_lines(path: str, lines: Iterable[int]) -> str:
    """A path and its lines as text: `relax/op.py 3-5,9`."""
    ranges: List[List[int]] = []
    for line in sorted(lines):
        if ranges and line == ranges[-1][1] + 1:
            ranges[-1][1] = line
        else:
            ranges.append([line, line])
    shown = [str(first) if first == last else f"{first}-{last}" for first, last in ranges]
    return f"{path} {','.join(shown)}"


def parse_lines(text: str) -> Tuple[str, List[int]]:
    """What `format_lines` was given; no lines if the text, which a worker sends, is malformed."""
    path, _, ranges = text.rpartition(" ")
    matches = [_RANGE.fullmatch(part) for part in ranges.split(",")]
    bounds = [(int(match[1]), int(match[2] or match[1])) for match in matches if match]
    if len(bounds) < len(matches):
        return path, []
    return path, [line for first, last in bounds for line in range(first, last + 1)]


class _Recorder:
    """The lines of functions in files below `folder`, or below those named `inner` in it.

    Tracing costs time at each line, so a function whose lines have all run is not traced again.
    """

    def __init__(self, folder: str, inner: Tuple[str, ...] = ()) -> None:
        self._folder = folder
        self._inner = tuple(os.path.join(folder, name, "") for name in inner) or folder  # noqa: PTH118
        # By id; each keeps its code alive. None: not of the package, or all lines have run.
        self._tracers: Dict[int, List[Any]] = {}
        self._lines: Dict[str, Set[int]] = {}

    def enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        """The trace function of calls; returns that of the function's lines."""
        del event, argument
        code = frame.f_code
        known = self._tracers.get(id(code))  # code that Dynamo makes may have no hash
        if known is None:
            known = self._tracers[id(code)] = [code, self._trace(code)]
        return known[1]

    def _trace(self, code: CodeType) -> Any:
        path = code.co_filename
        if not path.startswith(self._inner):
            return None
        found = self._lines.setdefault(path[len(self._folder) :], set())
        left = {line for _, line in dis.findlinestarts(code) if line}

        def line(frame: FrameType, event: str, argument: Any) -> Optional[Any]:
            del argument
            if event == "line":
                found.add(frame.f_lineno)
                left.discard(frame.f_lineno)
                if not left:
                    self._tracers[id(code)][1] = None
            return line

        return line

    def by_file(self) -> List[Tuple[str, Set[int]]]:
        """Path below the folder → lines, sorted by path."""
        return sorted((path, lines) for path, lines in self._lines.items() if lines)
