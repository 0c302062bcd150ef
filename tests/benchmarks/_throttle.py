"""Keeps a process to a share of a core, so that several machines' worth of processes fit on one."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

_PERIOD_S = 0.02


@contextmanager
def throttled(pid: int, share: float) -> Iterator[None]:
    """Stops a process and those that it started for all but `share` of each 20 ms; does nothing for 1."""
    if share >= 1:
        yield
        return
    over = threading.Event()
    pids = [pid, *_descendants(pid)]

    def work() -> None:
        while not over.is_set():
            _signal(pids, signal.SIGCONT)
            over.wait(share * _PERIOD_S)
            _signal(pids, signal.SIGSTOP)
            over.wait((1 - share) * _PERIOD_S)
        _signal(pids, signal.SIGCONT)

    thread = threading.Thread(target=work, name="throttle", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _signal(pids: Sequence[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _descendants(pid: int) -> list[int]:
    """The processes below `pid`, by Linux's /proc (proc_pid_task(5), children)."""
    children = [
        int(child)
        for thread in Path(f"/proc/{pid}/task").iterdir()
        for child in (thread / "children").read_text().split()
    ]
    return children + [one for child in children for one in _descendants(child)]
