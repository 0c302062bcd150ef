"""Keeps a process to a share of a core, so that several machines' worth of processes fit on one."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_PERIOD_S = 0.02


@contextmanager
def throttled(pid: int, share: float) -> Iterator[None]:
    """Stops a process for all but `share` of each 20 ms; does nothing for 1."""
    if share >= 1:
        yield
        return
    over = threading.Event()

    def work() -> None:
        with suppress(ProcessLookupError):
            while not over.is_set():
                os.kill(pid, signal.SIGCONT)
                over.wait(share * _PERIOD_S)
                os.kill(pid, signal.SIGSTOP)
                over.wait((1 - share) * _PERIOD_S)
            os.kill(pid, signal.SIGCONT)

    thread = threading.Thread(target=work, name="throttle", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
