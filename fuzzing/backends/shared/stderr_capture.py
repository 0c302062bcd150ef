"""What native code prints while one thing is done, kept from the process's log."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import contextmanager
from typing import IO, Iterator

_STDERR = 2


@contextmanager
def capture_stderr() -> Iterator[IO[bytes]]:
    """A file that takes all that is written to file descriptor 2 meanwhile; read it after the block.

    A process that dies meanwhile takes what it wrote with it.
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
