"""Base of every thread of the service.

A subclass does what is due (`run_once`); the loop sleeps, and survives database failures and bugs.
"""

from __future__ import annotations

import threading

import structlog
from prometheus_client import Counter

from bot.errors import InfrastructureError

#: Seconds between a turn that ended with a bug of Assay and the next one.
MIN_FAULT_PAUSE_S, MAX_FAULT_PAUSE_S = 1.0, 60.0
#: Bugs of Assay that a loop contained. In no registry, since several services may share a process.
FAULTS = Counter(
    "assay_contained_faults",
    "Bugs of Assay that ended one piece of work, not the thread",
    ["loop"],
    registry=None,
)

log = structlog.get_logger(__name__)


class Loop:
    """The work of a thread.

    name    in logs and /readyz
    idle_s  seconds it sleeps if nothing is due, unless woken: other processes add rows
    fault   the bug of Assay that ended the last turn, "" if it ended well; shown by /readyz
    """

    def __init__(self, name: str, idle_s: float) -> None:
        self.name, self.idle_s = name, idle_s
        self.fault = ""
        self._awake = threading.Event()

    def wake(self) -> None:
        """Ends the sleep; from any thread."""
        self._awake.set()

    def run_once(self, stop: threading.Event | None = None, /) -> bool:
        """Does the next due work, and ends it when `stop` is set; False if nothing is due.

        Raises InfrastructureError if the database fails.
        """
        raise NotImplementedError

    def run_forever(self, stop: threading.Event) -> None:
        """Runs until `stop` is set; work in progress then ends within a second and is repeated later.

        Exceptions never end the thread: the next turn begins after a pause that doubles up to
        MAX_FAULT_PAUSE_S while turns keep failing.
        """
        pause_s = MIN_FAULT_PAUSE_S
        while not stop.is_set():
            self._awake.clear()
            try:
                worked = self.run_once(stop)
            except InfrastructureError as error:  # the database: failures of an item stay in its turn
                log.exception("queue.unreadable", name=self.name, reason=str(error))
                worked = False
            except Exception as bug:
                self.fault = f"{type(bug).__name__}: {bug}"
                FAULTS.labels(loop=self.name).inc()
                log.exception("loop.fault_contained", name=self.name, retry_in_s=pause_s)
                stop.wait(pause_s)
                pause_s = min(2 * pause_s, MAX_FAULT_PAUSE_S)
                continue
            pause_s, self.fault = MIN_FAULT_PAUSE_S, ""
            if not worked and not stop.is_set():
                self._awake.wait(self.idle_s)
