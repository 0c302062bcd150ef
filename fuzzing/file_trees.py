"""Trees of files that untrusted code may have made: their removal, and their size.

`shutil.rmtree` calls itself for each level, so that a folder 1,000 levels deep ends it with RecursionError.
Names beyond 4,096 bytes of path cannot be opened at all. The functions here take any depth.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from dataclasses import dataclass
from pathlib import Path

#: What one name counts at least, so that many empty files count, too.
MIN_ENTRY_BYTES = 16 << 10
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_BLOCK = 512  # bytes of a unit of st_blocks, on every file system


def remove_tree(path: str | Path) -> None:
    """Removes a folder and everything in it, if it is there; symbolic links are removed and never followed.

    Raises the first OSError, after it has removed what else it can.
    """
    try:
        root = os.open(path, _FOLDER)
    except FileNotFoundError:
        return
    try:
        removal = _Removal(root)
        removal.run()
    finally:
        os.close(root)
    if removal.failure is not None:
        raise removal.failure
    os.rmdir(path)  # noqa: PTH106


def discard_tree(path: str | Path) -> None:
    """Removes as much of a folder as possible."""
    with contextlib.suppress(OSError):
        remove_tree(path)


@dataclass
class _Level:
    """One folder on the way down.

    name       in its parent
    identity   device and inode, by which the way up is checked
    remaining  its folders that are not removed yet
    """

    name: str
    identity: tuple[int, int]
    remaining: list[str]


class _Removal:
    """Empties a folder by going down and up one level at a time, with one descriptor.

    failure  the first one
    """

    def __init__(self, root: int) -> None:
        self.failure: OSError | None = None
        self._here = os.dup(root)
        self._levels = [_Level("", _identity(root), self._remove_files())]

    def run(self) -> None:
        """Removes everything that can be removed."""
        try:
            while self._levels[-1].remaining or len(self._levels) > 1:
                if self._levels[-1].remaining:
                    self._go_down(self._levels[-1].remaining.pop())
                else:
                    self._go_up()
        finally:
            os.close(self._here)

    def _go_down(self, name: str) -> None:
        try:
            with contextlib.suppress(OSError):  # of another owner
                os.chmod(name, stat.S_IRWXU, dir_fd=self._here)
            inner = os.open(name, _FOLDER, dir_fd=self._here)
        except OSError as error:
            self.failure = self.failure or error
            return
        os.close(self._here)
        self._here = inner
        self._levels.append(_Level(name, _identity(inner), self._remove_files()))

    def _go_up(self) -> None:
        name = self._levels.pop().name
        outer = os.open("..", _FOLDER, dir_fd=self._here)
        os.close(self._here)
        self._here = outer
        if _identity(outer) != self._levels[-1].identity:
            raise OSError(errno.EBUSY, "a folder was moved while it was removed")
        try:
            os.rmdir(name, dir_fd=outer)
        except OSError as error:
            self.failure = self.failure or error

    def _remove_files(self) -> list[str]:
        """Removes all but the folders of the current folder; returns their names."""
        folders = []
        for name in os.listdir(self._here):
            try:
                if _is_folder(self._here, name):
                    folders.append(name)
                else:
                    os.unlink(name, dir_fd=self._here)
            except OSError as error:
                self.failure = self.failure or error
        return folders


def _identity(folder: int) -> tuple[int, int]:
    found = os.fstat(folder)
    return found.st_dev, found.st_ino


def _is_folder(folder: int, name: str) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)


def tree_bytes(path: str | Path, limit: int) -> int:
    """The bytes of disk that a folder takes, counted until they exceed `limit`.

    Each name counts at least MIN_ENTRY_BYTES. A folder that cannot be read, or whose path is too long,
    exceeds the limit: only a program that hides files makes one. What disappears meanwhile counts nothing.
    """
    total = 0
    folders = [os.fspath(path)]
    while folders and total <= limit:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    total += _entry_bytes(entry)
                    if total > limit:
                        break
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            return limit + 1
    return total


def _entry_bytes(entry: os.DirEntry[str]) -> int:
    try:
        blocks = entry.stat(follow_symlinks=False).st_blocks
    except FileNotFoundError:
        return 0
    return max(blocks * _BLOCK, MIN_ENTRY_BYTES)
