"""The queue of the inbox: each delivery once, in order of arrival, some of them in one transaction.

What a delivery asks for and the mark that it is done are committed together, so a process killed at
any point leaves the delivery either untouched or done. If one delivery of a batch fails, the batch is
rolled back and each of its deliveries gets a transaction of its own, which decides what the failure means.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import structlog
from structlog.contextvars import bound_contextvars

from bot.errors import InfrastructureError
from bot.store import Database, Session, inbox
from bot.store.inbox import DeliveryResult, InboxPosition, ReceivedDelivery
from bot.store.jobs import INTERNAL_ERROR
from bot.store.models import DeliveryState
from bot.webhooks import events
from bot.webhooks.intents import Ignored, Intent
from bot.worker import Delays, Queue, WorkItem

PAGE = 100  # deliveries looked up at once
#: Deliveries in one transaction, and the bytes of their payloads after which it is full. On PostgreSQL
#: acknowledgements do not wait for a transaction, and each costs five round trips.
BATCH, SERVER_BATCH, BATCH_BYTES = 8, 32, 1024 * 1024
#: Seconds after which a batch ends on SQLite, where acknowledgements wait for it.
BATCH_S = 0.01
#: Seconds to wait after the first and the second failure of our machines: a restart of a database
#: takes some seconds, a full disk some longer.
BACKOFF_S = (5.0, 60.0)
#: Seconds between sweeps of the inbox, for deliveries that other processes stored and for back-offs.
IDLE_S = 5.0
#: How long a worker waits for more once something has come: a burst is then read in one go. GitHub waits
#: for an acknowledgement, not for this.
BATCH_DELAY_S = 0.05

#: Carries out an intent inside the transaction that marks its delivery done. The first argument is
#: the session to be handed to `bot.store`'s functions. An `Ignored` it returns is kept with the delivery;
#: other answers are not looked at.
Handler = Callable[[Session, Intent], object]

log = structlog.get_logger(__name__)


class InboxQueue(Queue):
    """Pending deliveries. Their rows have no lease: the transaction that handles one locks it."""

    name, idle_s, backoff = "inbox-reader", IDLE_S, BACKOFF_S

    def __init__(
        self, database: Database, handle: Handler, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._database, self._handle = database, handle
        self._delays: Delays[str] = Delays(clock)

    def release_other_leases(self, owner: str) -> None:
        """Does nothing: deliveries have no lease."""

    def claim(self, owner: str, stop: threading.Event) -> Iterator[WorkItem]:
        """What is pending and due."""
        del owner
        stop.wait(BATCH_DELAY_S)
        after, more = None, True
        while more:
            positions = self._pending(after)
            more = len(positions) == PAGE
            if more:  # more than this process reads soon
                self._database.notify(self.name)
            due = (position for position in positions if self._delays.is_due(position.id))
            for batch in _batches(due, BATCH if self._database.is_sqlite else SERVER_BATCH):
                yield from self._runs(batch, stop)
                if stop.is_set():
                    return
            after = positions[-1] if positions else after

    def _runs(self, batch: Sequence[InboxPosition], stop: threading.Event) -> Iterator[WorkItem]:
        """The batch; then its deliveries one by one, if it is rolled back or has but one."""
        begun = time.thread_time()
        if len(batch) > 1:
            together = _Batch(self._database, self._handle, [position.id for position in batch])
            yield together
            batch = [position for position in batch if position.id in together.left]
        for position in batch:
            yield _DeliveryRun(self._database, self._handle, self._delays, position)
        # Acknowledgements are stored in the same database: leave them half of its time. PostgreSQL's server
        # spends about as much as we do, and at its own priority.
        stop.wait((time.thread_time() - begun) * (1 if self._database.is_sqlite else 2))

    def _pending(self, after: InboxPosition | None) -> list[InboxPosition]:
        with self._database.reading() as session:
            return inbox.pending(session, after, PAGE)


def _batches(positions: Iterable[InboxPosition], most: int) -> Iterator[list[InboxPosition]]:
    """Splits the positions into lists to be read in one transaction; one that failed before is alone."""
    batch: list[InboxPosition] = []
    for position in positions:
        size = sum(other.size for other in batch) + position.size
        if batch and (len(batch) == most or size > BATCH_BYTES or position.attempts or batch[-1].attempts):
            yield batch
            batch = []
        batch.append(position)
    if batch:
        yield batch


def _process(session: Session, handle: Handler, received: ReceivedDelivery) -> DeliveryResult:
    """Carries out the intents of a delivery; the result to record.

    Raises what the parser of its event and the handler raise.
    """
    parsed = events.parse_event(received.event, received.payload)
    intents = [replace(intent, delivery=received.id) for intent in parsed.intents]
    answers = [handle(session, intent) for intent in intents]
    ignored_reasons = [answer.why for answer in answers if isinstance(answer, Ignored)]
    idle = parsed.ignored or (bool(ignored_reasons) and len(ignored_reasons) == len(answers))
    state = DeliveryState.IGNORED if idle else DeliveryState.DONE
    note = "; ".join(text for text in (parsed.note, *ignored_reasons) if text)
    return DeliveryResult(received.id, state, note)


def _log_result(result: DeliveryResult) -> None:
    log.info("delivery.read", state=result.state.value, note=result.reason)


class _Batch:
    """An attempt at several deliveries in one transaction.

    left  the ids that are not processed after `work`: all if one failed, the last if time was up
    """

    attempt = 1

    def __init__(self, database: Database, handle: Handler, ids: Sequence[str]) -> None:
        self._database, self._handle = database, handle
        self.left = frozenset(ids)
        self._ids = ids

    @property
    def log_fields(self) -> Mapping[str, object]:
        """The number of deliveries."""
        return {"deliveries": len(self._ids)}

    def work(self) -> None:
        """Processes and records all of them until time is up, or none."""
        results: list[DeliveryResult] = []
        try:
            with self._database.transaction(durable=False) as session:
                received = inbox.claim(session, self._ids)
                deadline = time.monotonic() + BATCH_S if self._database.is_sqlite else math.inf
                for delivery in received:
                    results.append(_process(session, self._handle, delivery))
                    if time.monotonic() > deadline:
                        break
                inbox.record_results(session, results)
        except Exception as error:  # not swallowed: the delivery that caused it raises it again when alone
            log.debug("batch.rolled_back", cause=type(error).__name__, exc_info=True)
            return
        self.left = frozenset(delivery.id for delivery in received[len(results) :])
        for result in results:
            with bound_contextvars(delivery_id=result.id):
                _log_result(result)

    def release_lease(self) -> None:
        """Does nothing: deliveries have no lease."""

    def postpone(self, error: Exception, seconds: float) -> None:
        """Does nothing: `work` raises no failure."""

    def fail(self, error: Exception) -> None:
        """Does nothing: `work` raises no failure."""

    def record_internal_error(self, bug: Exception) -> None:
        """Does nothing: `work` raises no failure."""


@dataclass(frozen=True)
class _DeliveryRun:
    """An attempt at a delivery."""

    database: Database
    handle: Handler
    delays: Delays[str]
    position: InboxPosition

    @property
    def log_fields(self) -> Mapping[str, object]:
        """The id of the delivery."""
        return {"delivery_id": self.position.id}

    @property
    def attempt(self) -> int:
        """One more than the failures so far."""
        return self.position.attempts + 1

    def work(self) -> None:
        """Carries out its intents and records the result."""
        with self.database.transaction(durable=False) as session:
            received = inbox.claim(session, [self.position.id])
            results = [_process(session, self.handle, delivery) for delivery in received]
            inbox.record_results(session, results)
        for result in results:
            _log_result(result)

    def release_lease(self) -> None:
        """Does nothing: deliveries have no lease."""

    def postpone(self, error: Exception, seconds: float) -> None:
        """Counts the attempt; the delivery is tried again later, behind the others."""
        self.delays.postpone(self.position.id, seconds)
        if isinstance(error, InfrastructureError):
            with self.database.transaction() as session:
                inbox.count_attempt(session, self.position.id, str(error))

    def fail(self, error: Exception) -> None:
        """Records the reason."""
        reason = str(error)
        with self.database.transaction() as session:
            if isinstance(error, InfrastructureError):
                attempts = inbox.count_attempt(session, self.position.id, reason)
                reason = f"given up after {attempts} attempts: {reason}"
            self._record_failure(session, reason)

    def record_internal_error(self, bug: Exception) -> None:
        """Records the bug."""
        with self.database.transaction() as session:
            self._record_failure(session, f"{INTERNAL_ERROR}: {type(bug).__name__}: {bug}")

    def _record_failure(self, session: Session, reason: str) -> None:
        inbox.record_results(session, [DeliveryResult(self.position.id, DeliveryState.FAILED, reason)])
