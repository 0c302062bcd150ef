"""Processor time, which says what work costs where the clock on the wall says how busy the machine is."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

#: Linux, posix-timers_types.h: the clock of another process is ~pid << 3, or'ed with CPUCLOCK_SCHED.
_SCHEDULED = 2


class Used(NamedTuple):
    """Seconds that some cases took: by the clock, of this process's processor time, of its children's."""

    wall: float
    ours: float
    theirs: float

    def since(self, begin: Used) -> Used:
        """What was used between `begin` and this."""
        return Used(self.wall - begin.wall, self.ours - begin.ours, self.theirs - begin.theirs)


def used() -> Used:
    """Now; of the children, only what living ones have used."""
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
