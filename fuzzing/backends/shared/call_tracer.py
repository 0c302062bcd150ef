"""Which of a frontend's Python functions are called while one thing is done."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from types import FrameType
from typing import Any, Callable, Iterator

from fuzzing.backends.base import Instrumentation


@contextmanager
def note_calls(
    instrumentation: Instrumentation, below: str, name: Callable[[FrameType], str]
) -> Iterator[None]:
    """Notes, as converters, the functions called in the block whose file's path contains `below`.

    name  what to call it, of the frame as it is entered; "" for one that is no converter
    """
    if not instrumentation.record:
        yield
        return

    def entered(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and below in frame.f_code.co_filename:
            found = name(frame)
            if found:
                instrumentation.note("converter", found)

    before = sys.getprofile()
    sys.setprofile(entered)
    try:
        yield
    finally:
        sys.setprofile(before)
