"""Scratch folders: one for each worker, removed with it, or by the next supervisor if theirs was killed.

A folder is locked while its owner lives; the kernel releases the lock of a killed owner.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fuzzing.errors import ToolchainError
from fuzzing.file_trees import discard_tree

PREFIX = "assay-worker-"


class ScratchFolder:
    """A new folder, removed by `remove`. Raises ToolchainError if it cannot be made.

    path  absolute
    """

    def __init__(self) -> None:
        while True:
            self.path = _make_folder()
            try:
                self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except FileNotFoundError:  # swept already
                continue
            if _try_lock(self._lock) and os.path.isdir(self.path):  # noqa: PTH112
                return
            os.close(self._lock)  # another process saw it before it was locked, and sweeps it

    def make_inner(self) -> InnerFolder:
        """A new folder within, which may be removed earlier. Raises ToolchainError."""
        return InnerFolder(_make_folder(self.path))

    def remove(self) -> None:
        """Removes the folder with its content."""
        discard_tree(self.path)
        os.close(self._lock)


@dataclass(frozen=True)
class InnerFolder:
    """A folder in a scratch folder."""

    path: str

    def remove(self) -> None:
        """Removes the folder with its content."""
        discard_tree(self.path)


def _make_folder(within: str | None = None) -> str:
    try:
        return tempfile.mkdtemp(prefix=PREFIX, dir=within)
    except OSError as error:
        raise ToolchainError(
            f"cannot make a folder for a worker: {error.strerror}; free some space, or set TMPDIR to a "
            "folder that can be written"
        ) from error


def sweep() -> int:
    """Removes the folders whose owners are dead; returns their number."""
    removed = 0
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with _open_folder(path) as folder:
            if folder is not None and os.fstat(folder).st_uid == os.getuid() and _try_lock(folder):
                discard_tree(path)
                removed += 1
    return removed


@contextlib.contextmanager
def _open_folder(path: Path) -> Iterator[int | None]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:  # gone, not a folder, or another user's
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
