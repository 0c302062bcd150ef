"""Buffered writes to a pipe, kept in parts: only the kernel copies them."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable
from itertools import islice

_AT_ONCE = os.sysconf("SC_IOV_MAX")  # parts


class WriteBuffer:
    """Bytes to write.

    size  their number
    """

    def __init__(self) -> None:
        self._parts: deque[bytes | memoryview] = deque()
        self.size = 0

    def add(self, parts: Iterable[bytes]) -> None:
        """Appends bytes, without a copy."""
        for part in parts:
            self._parts.append(part)
            self.size += len(part)

    def write(self, descriptor: int) -> None:
        """Writes what the pipe takes; raises BrokenPipeError if its reader is gone."""
        while self.size:
            try:
                written = os.writev(descriptor, list(islice(self._parts, _AT_ONCE)))
            except BlockingIOError:
                return
            self._drop(written)

    def clear(self) -> None:
        """Discards all bytes."""
        self._parts.clear()
        self.size = 0

    def _drop(self, written: int) -> None:
        self.size -= written
        parts = self._parts
        while parts and len(parts[0]) <= written:
            written -= len(parts.popleft())
        if written:
            parts[0] = memoryview(parts[0])[written:]
