"""The queue of the inbox: each delivery once, in order of arrival, one transaction each.

What a delivery asks for and the mark that it is done are committed together, so a process killed at
any point leaves the delivery either untouched or done.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import structlog

from bot.errors import InfrastructureError
from bot.store import Database, Session, inbox
from bot.store.inbox import InboxPosition
from bot.store.jobs import INTERNAL_ERROR
from bot.store.models import DeliveryState
from bot.webhooks import events
from bot.webhooks.intents import Ignored, Intent
from bot.worker import Delays, Queue

PAGE = 100  # deliveries looked up at once
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

    def claim(self, owner: str, stop: threading.Event) -> Iterator[_DeliveryRun]:
        """What is pending and due."""
        del owner
        stop.wait(BATCH_DELAY_S)
        after, more = None, True
        while more:
            positions = self._pending(after)
            more = len(positions) == PAGE
            for position in positions:
                if self._delays.is_due(position.id):
                    begun = time.thread_time()
                    yield _DeliveryRun(self._database, self._handle, self._delays, position)
                    # Acknowledgements are stored in the same database: leave them half of its time.
                    stop.wait(time.thread_time() - begun)
            after = positions[-1] if positions else after

    def _pending(self, after: InboxPosition | None) -> list[InboxPosition]:
        with self._database.reading() as session:
            return inbox.pending(session, after, PAGE)


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
            received = inbox.claim(session, self.position.id)
            if received is None:
                return
            parsed = events.parse_event(received.event, received.payload)
            intents = [replace(intent, delivery=received.id) for intent in parsed.intents]
            answers = [self.handle(session, intent) for intent in intents]
            ignored_reasons = [answer.why for answer in answers if isinstance(answer, Ignored)]
            idle = parsed.ignored or (bool(ignored_reasons) and len(ignored_reasons) == len(answers))
            state = DeliveryState.IGNORED if idle else DeliveryState.DONE
            note = "; ".join(text for text in (parsed.note, *ignored_reasons) if text)
            inbox.record_result(session, received.id, state, note)
        log.info("delivery.read", state=state.value, intents=len(intents), note=note)

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
        with self.database.transaction() as session:
            reason = str(error)
            if isinstance(error, InfrastructureError):
                attempts = inbox.count_attempt(session, self.position.id, reason)
                reason = f"given up after {attempts} attempts: {reason}"
            inbox.record_result(session, self.position.id, DeliveryState.FAILED, reason)

    def record_internal_error(self, bug: Exception) -> None:
        """Records the bug."""
        with self.database.transaction() as session:
            reason = f"{INTERNAL_ERROR}: {type(bug).__name__}: {bug}"
            inbox.record_result(session, self.position.id, DeliveryState.FAILED, reason)
