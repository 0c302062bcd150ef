"""Captures what native code prints in a block, instead of the process's log."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import contextmanager
from typing import IO, Iterator

_STDERR = 2


@contextmanager
def capture_stderr() -> Iterator[IO[bytes]]:
    """A file that receives all writes to file descriptor 2 in the block; read it afterwards.

    If the process dies in the block, that text is lost.
    """
    sys.stderr.flush()
    kept = os.dup(_STDERR)
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller reads it after the block
    os.dup2(file.fileno(), _STDERR)
    try:
        yield file
    finally:
        sys.stderr.flush()
        os.dup2(kept, _STDERR)
        os.close(kept)
        file.seek(0)
