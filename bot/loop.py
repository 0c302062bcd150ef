"""Base of every thread of the service.

A subclass does what is due (`run_once`); the loop sleeps, survives database failures, and handles failed
work. State in memory may be lost at any instruction: everything is in rows.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Protocol

import structlog
from prometheus_client import Counter
from structlog.contextvars import bound_contextvars

from bot.errors import EXPECTED_ERRORS, InfrastructureError
from bot.leases import Interrupted, LeaseLost, new_owner

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


class WorkItem(Protocol):
    """Claimed work, and what to write if it fails. All methods may raise LeaseLost."""

    @property
    def log_fields(self) -> Mapping[str, object]:
        """Fields of log lines."""

    def work(self) -> None:
        """Does the work and records the result."""

    def release_lease(self) -> None:
        """Releases the work: the process is shutting down."""

    def wait(self) -> float | None:
        """Seconds until a retry after an infrastructure failure; None for no retry."""

    def postpone(self, error: Exception, seconds: float) -> None:
        """Schedules the retry."""

    def fail(self, error: Exception) -> None:
        """Fails it for good; the error is the reason, for people."""

    def record_internal_error(self, bug: Exception) -> None:
        """Fails it for a bug of Assay, whose traceback is logged."""


class Loop:
    """The work of a thread.

    name    in logs and /readyz
    idle_s  seconds it sleeps if nothing is due, unless woken: other processes add rows
    owner   of its leases
    fault   the bug of Assay that ended the last turn, "" if it ended well; shown by /readyz
    """

    def __init__(self, name: str, idle_s: float) -> None:
        self.name, self.idle_s = name, idle_s
        self.owner = new_owner()
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

    def process(self, item: WorkItem) -> None:
        """Does one item and handles its failure."""
        with bound_contextvars(**item.log_fields):
            began = time.monotonic()
            log.info("work.started")
            try:
                item.work()
            except LeaseLost:
                log.info("work.lease_lost")
            except (Interrupted, KeyboardInterrupt, SystemExit) as signal:
                _release_lease(item)
                if not isinstance(signal, Interrupted):
                    raise
            except EXPECTED_ERRORS as error:
                _handle_failure(item, error)
            except Exception as error:
                FAULTS.labels(loop=self.name).inc()
                log.exception("internal_error")
                _record_internal_error(item, error)
            else:
                log.info("work.done", seconds=round(time.monotonic() - began, 3))


def _release_lease(item: WorkItem) -> None:
    try:
        item.release_lease()
    except LeaseLost:
        log.info("work.lease_lost")
    else:
        log.info("work.interrupted")


def _handle_failure(item: WorkItem, error: Exception) -> None:
    """Records a failure; a bug in doing so ends the item, not the loop."""
    transient = isinstance(error, InfrastructureError) and error.transient
    try:
        seconds = item.wait() if transient else None
        if seconds is None:
            item.fail(error)
            log.warning("work.failed", error=str(error))
        else:
            item.postpone(error, seconds)
            log.warning("work.postponed", retry_in_s=seconds, error=str(error))
    except LeaseLost:
        log.info("work.lease_lost", error=str(error))
    except InfrastructureError:
        raise  # the database fails; the lease expires and the work is repeated
    except Exception as bug:
        log.exception("internal_error")
        _record_internal_error(item, bug)


def _record_internal_error(item: WorkItem, bug: Exception) -> None:
    try:
        item.record_internal_error(bug)
    except LeaseLost:
        log.info("work.lease_lost")
