"""The one worker of all queues: claim, run, retry with back-off, and contain failures.

A queue is a table of rows that are work; `Queue` is the adapter of one table. The worker decides what a
failure means; a queue only stores each ending:

    signal of `bot.leases`, or of the process   the lease is released, the work is done again later
    a build that the repository's CI still makes postponed by the error's own wait
    infrastructure failure that may pass        postponed by the queue's back-off; failed after its last one
    any other expected error                    failed for good
    a bug of Assay                              counted and logged; postponed by `bug_backoff`, then failed
    a bug while the ending is stored            quarantined: postponed by QUARANTINE_S, behind all others
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

import structlog
from structlog.contextvars import bound_contextvars

from bot.errors import EXPECTED_ERRORS, BuildPendingError, InfrastructureError
from bot.leases import Interrupted, LeaseLost, new_owner
from bot.loop import FAULTS, Loop
from bot.store import Database, Session
from bot.store.jobs import INTERNAL_ERROR

#: Seconds for which an item waits whose ending cannot be stored; as long as a lease (`bot.leases.LEASE`).
QUARANTINE_S = 60.0

K = TypeVar("K")
R = TypeVar("R")

log = structlog.get_logger(__name__)


class WorkItem(Protocol):
    """A claimed row, and how each ending of its work is stored. All methods may raise LeaseLost."""

    @property
    def log_fields(self) -> Mapping[str, object]:
        """Fields of log lines."""

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1."""

    def work(self) -> None:
        """Does the work and stores the result."""

    def release_lease(self) -> None:
        """Releases the row: the process is shutting down."""

    def postpone(self, error: Exception, seconds: float) -> None:
        """Schedules the next attempt."""

    def fail(self, error: Exception) -> None:
        """Fails it for good; the error is the reason, for people."""

    def record_internal_error(self, bug: Exception) -> None:
        """Fails it for a bug of Assay, whose traceback is logged."""


class Queue:
    """One table of work.

    name         of its worker, in logs, metrics and /readyz
    idle_s       seconds a worker sleeps if nothing is due, unless woken: other processes add rows
    backoff      seconds after each attempt that failed by infrastructure, but the last
    bug_backoff  the same for attempts that met a bug of Assay
    """

    name: str
    idle_s: float
    backoff: Sequence[float] = ()
    bug_backoff: Sequence[float] = ()

    def claim(self, owner: str, stop: threading.Event) -> Iterator[WorkItem]:
        """The due items of one turn; each is claimed for `owner` when the worker is ready for it."""
        raise NotImplementedError

    def release_other_leases(self, owner: str) -> None:
        """Frees the leases of all others at once: no other process runs. Back-offs stay."""
        raise NotImplementedError


class Worker(Loop):
    """Works off one queue, one item at a time, under leases of its own `owner`."""

    def __init__(self, queue: Queue) -> None:
        super().__init__(queue.name, queue.idle_s)
        self.queue = queue
        self.owner = new_owner()

    def start(self, *, free_other_leases: bool = False) -> None:
        """Call once before it works.

        free_other_leases  for a process that holds the lock of its data folder, so other owners are dead;
                           otherwise their leases expire in a minute
        """
        if free_other_leases:
            self.queue.release_other_leases(self.owner)

    def run_once(self, stop: threading.Event | None = None, /) -> bool:
        """Works off one turn, up to `stop`; False if nothing is due."""
        stop, worked = stop or threading.Event(), False
        for item in self.queue.claim(self.owner, stop):
            worked = True
            self.process(item)
            if stop.is_set():
                break
        return worked

    def process(self, item: WorkItem) -> None:
        """Does one item and handles its failure."""
        with bound_contextvars(**item.log_fields):
            began = time.monotonic()
            log.debug("work.started")
            try:
                item.work()
            except LeaseLost:
                log.info("work.lease_lost")
            except (Interrupted, KeyboardInterrupt, SystemExit) as signal:
                if self._store(item, item.release_lease):
                    log.info("work.interrupted")
                if not isinstance(signal, Interrupted):
                    raise
            except EXPECTED_ERRORS as error:
                self._handle_failure(item, error)
            except Exception as bug:
                log.exception("internal_error")
                self._handle_bug(item, bug)
            else:
                log.info("work.done", seconds=round(time.monotonic() - began, 3))

    def _handle_failure(self, item: WorkItem, error: Exception) -> None:
        if isinstance(error, BuildPendingError):  # whoever raises it bounds the time
            if self._store(item, lambda: item.postpone(error, error.wait_s)):
                log.info("work.waits", retry_in_s=error.wait_s, reason=str(error))
            return
        may_pass = isinstance(error, InfrastructureError) and error.transient
        if may_pass and item.attempt <= len(self.queue.backoff):
            self._postpone(item, error, self.queue.backoff)
        elif self._store(item, lambda: item.fail(error)):
            log.warning("work.failed", error=str(error))

    def _handle_bug(self, item: WorkItem, bug: Exception) -> None:
        FAULTS.labels(loop=self.name).inc()
        if item.attempt <= len(self.queue.bug_backoff):
            self._postpone(item, bug, self.queue.bug_backoff)
        else:
            self._record_internal_error(item, bug)

    def _postpone(self, item: WorkItem, error: Exception, delays: Sequence[float]) -> None:
        seconds = delays[item.attempt - 1]
        if self._store(item, lambda: item.postpone(error, seconds)):
            log.warning("work.postponed", retry_in_s=seconds, error=str(error))

    def _store(self, item: WorkItem, ending: Callable[[], None]) -> bool:
        """Stores an ending; False if the lease was lost, or a bug prevents it and the item ends otherwise.

        Raises InfrastructureError: the database fails; the lease expires and the work is repeated.
        """
        try:
            ending()
        except LeaseLost:
            log.info("work.lease_lost")
        except InfrastructureError:
            raise
        except Exception as bug:
            FAULTS.labels(loop=self.name).inc()
            log.exception("internal_error")
            self._record_internal_error(item, bug)
        else:
            return True
        return False

    def _record_internal_error(self, item: WorkItem, bug: Exception) -> None:
        """Fails an item; one whose failure cannot be stored waits, so that the others go on."""
        try:
            item.record_internal_error(bug)
        except LeaseLost:
            log.info("work.lease_lost")
        except InfrastructureError:
            raise
        except Exception as again:
            FAULTS.labels(loop=self.name).inc()
            log.exception("work.quarantined", retry_in_s=QUARANTINE_S)
            item.postpone(again, QUARANTINE_S)


def claim_row(
    database: Database, is_due: Callable[[Session], bool], claim: Callable[[Session], R | None]
) -> R | None:
    """What `claim` returns in a short transaction of its own; None if nothing is due.

    Looks without a write lock first: idle workers look every second.
    """
    with database.reading() as session:
        if not is_due(session):
            return None
    with database.transaction(durable=False) as session:
        return claim(session)


def internal_error_reason(bug: Exception) -> str:
    """The reason for people of what failed by a bug, without its text, which may contain anything."""
    return f"{INTERNAL_ERROR}: {type(bug).__name__}; its log has the traceback"


class Delays(Generic[K]):
    """Rows without a lease that wait for their next attempt, in this process.

    clock  seconds
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._until: dict[K, float] = {}

    def postpone(self, key: K, seconds: float) -> None:
        """The row is not due for so long."""
        at = self._clock()
        self._until = {other: until for other, until in self._until.items() if until > at}
        self._until[key] = at + seconds

    def is_due(self, key: K) -> bool:
        """Whether the row does not wait."""
        return self._until.get(key, self._clock()) <= self._clock()
