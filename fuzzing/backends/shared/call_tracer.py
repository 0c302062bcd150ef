"""Records which Python functions of a frontend are called in a block."""

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

    name  maps the entered frame to a name; "" for a function that is not a converter
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
