"""CPU time of processes, which does not depend on other load."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

#: Linux, posix-timers_types.h: the clock of another process is ~pid << 3, or'ed with CPUCLOCK_SCHED.
_SCHEDULED = 2


class Used(NamedTuple):
    """Seconds: wall clock, CPU time of this process, CPU time of its children."""

    wall: float
    ours: float
    theirs: float

    def since(self, begin: Used) -> Used:
        """The difference to `begin`."""
        return Used(self.wall - begin.wall, self.ours - begin.ours, self.theirs - begin.theirs)


def used() -> Used:
    """The current values; of children only running ones."""
    theirs = sum(_of(child) for child in _descendants(os.getpid()))
    return Used(time.perf_counter(), time.process_time(), theirs)


def _of(pid: int) -> float:
    try:
        return time.clock_gettime((~pid << 3) | _SCHEDULED)
    except OSError:  # it has ended
        return 0.0


def _descendants(pid: int) -> Iterator[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except FileNotFoundError:
        return
    for child in map(int, children):
        yield child
        yield from _descendants(child)


def used_by_tree() -> float:
    """CPU seconds of this process and all below it, those included that have ended and were waited for."""
    rows = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = file.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        rows[int(file.parent.name)] = int(fields[1]), sum(map(int, fields[11:15]))  # proc_pid_stat(5)
    ours = {os.getpid()}
    while more := {pid for pid, (parent, _) in rows.items() if parent in ours} - ours:
        ours |= more
    return sum(rows[pid][1] for pid in ours) / os.sysconf("SC_CLK_TCK")
