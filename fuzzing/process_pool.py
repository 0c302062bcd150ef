"""Ordered work in several processes: few pieces in flight, and no process outlives its parent."""

from __future__ import annotations

import ctypes
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import TypeVar

from fuzzing.errors import InfrastructureError

_PR_SET_PDEATHSIG = 1  # linux/prctl.h

Piece = TypeVar("Piece")
Result = TypeVar("Result")


def map_in_processes(
    function: Callable[[Piece], Result],
    items: Iterable[Piece],
    processes: int,
    crash_message: str,
    ahead: int = 2,
) -> Iterator[Result]:
    """`function` of each item, in order, in `processes` processes, or in this one if that is 1.

    function       can be pickled, as can items and results; its exceptions are raised here
    crash_message  text of the InfrastructureError raised if a process dies
    ahead          items in flight for each process; more where they differ much in cost
    """
    if processes == 1:
        yield from map(function, items)
        return
    context = get_context("spawn")  # the caller may have threads, which do not survive a fork
    with ProcessPoolExecutor(
        processes, context, initializer=_die_with_parent, initargs=(os.getpid(),)
    ) as pool:
        pending: deque[Future[Result]] = deque()
        try:
            for piece in items:
                pending.append(pool.submit(function, piece))
                if len(pending) > ahead * processes:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        except BrokenProcessPool as error:
            raise InfrastructureError(crash_message) from error


def _die_with_parent(parent: int) -> None:
    """Makes the kernel end this process when its parent dies."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
