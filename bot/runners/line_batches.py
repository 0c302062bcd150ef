"""Lines that one thread writes and another takes in batches.

Each line handed over by itself would wake the other thread, and each batch sent costs some milliseconds on
both sides, whatever it holds.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

#: Seconds between two batches.
BATCH_S = 0.5
#: Lines and bytes at which a batch is due sooner. A machine that is lost loses what it has not sent.
_LINES, _BYTES = 500, 256 << 10


class LineBatches:
    """Lines, in order; iterated over by one thread."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._bytes = 0
        self._ended = False
        self._changed = threading.Condition()

    def put(self, line: bytes) -> None:
        """Adds a line."""
        with self._changed:
            self._lines.append(line)
            self._bytes += len(line)
            if self._is_due():
                self._changed.notify()

    def end(self) -> None:
        """No line follows."""
        with self._changed:
            self._ended = True
            self._changed.notify()

    def _is_due(self) -> bool:
        return self._ended or len(self._lines) >= _LINES or self._bytes >= _BYTES

    def __iter__(self) -> Iterator[list[bytes]]:
        """The batches until the end; one is empty where nothing came for BATCH_S seconds."""
        ended = False
        while not ended:
            with self._changed:
                self._changed.wait_for(self._is_due, BATCH_S)
                batch, self._lines, self._bytes = self._lines, [], 0
                ended = self._ended
            if batch or not ended:
                yield batch
