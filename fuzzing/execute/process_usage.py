"""What a process and its descendants use: resident memory, and files without a name."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

_PAGE_SIZE = os.sysconf("SC_PAGE_SIZE")
#: Processes of one worker that are looked at, in the order of their generations. A worker with more is ended,
#: so that none hides what it uses. Compilers have three or four, and one for each processor.
MAX_TREE = 1024
_MAX_OPEN_FILES = 4096  # of one process that are looked at
_BLOCK = 512  # bytes of a unit of st_blocks


def process_tree(pid: int) -> list[int]:
    """A process and its descendants, as far as the kernel lists them; of many, a few above `MAX_TREE`."""
    found = [pid]
    for one in found:  # which grows meanwhile
        try:
            for thread in os.listdir(f"/proc/{one}/task"):
                with open(f"/proc/{one}/task/{thread}/children", "rb") as file:
                    found += map(int, file.read().split())
        except OSError:  # it has ended, or the kernel lacks CONFIG_PROC_CHILDREN
            continue
        if len(found) > MAX_TREE:
            break
    return found


def resident_bytes(pid: int) -> int:
    """Resident memory of a process and its descendants in bytes; 0 if it is gone.

    A page that several of them share counts once (proc(5): Pss in smaps_rollup).
    """
    tree = process_tree(pid)
    if len(tree) == 1:
        return _resident(pid)
    largest = max(map(_resident, tree))
    return max(largest, sum(map(_proportional, tree)))


def _resident(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE_SIZE
    except (OSError, IndexError):  # it has ended
        return 0


def _proportional(pid: int) -> int:
    """Its own pages, and its share of the shared ones; 0 if it has ended or the kernel does not report it."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) << 10
    except OSError:
        pass
    return 0


def unnamed_file_bytes(pid: int) -> int:
    """Bytes of the files that a process and its descendants have open and that no folder lists any more.

    Among them are files in memory (memfd_create(2)), which count as nobody's resident memory.
    """
    sizes: dict[tuple[int, int], int] = {}
    for one in process_tree(pid):
        for number in _open_files(one):
            with contextlib.suppress(OSError):  # closed meanwhile
                found = Path(f"/proc/{one}/fd/{number}").stat()
                if stat.S_ISREG(found.st_mode) and not found.st_nlink:
                    sizes[found.st_dev, found.st_ino] = found.st_blocks * _BLOCK
    return sum(sizes.values())


def _open_files(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/fd")[:_MAX_OPEN_FILES]
    except OSError:
        return []
