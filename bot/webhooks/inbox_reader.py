"""Reads the inbox: each delivery once, in order of arrival, one transaction each.

What a delivery asks for and the mark that it is done are committed together, so a process killed at
any point leaves the delivery either untouched or done.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

import structlog

from bot.errors import AssayError, InfrastructureError, InternalError
from bot.loop import FAULTS
from bot.store import Database, Session, inbox
from bot.store.inbox import InboxPosition
from bot.store.models import DeliveryState
from bot.webhooks import events
from bot.webhooks.intents import Ignored, Intent

MAX_ATTEMPTS = 3
PAGE = 100  # deliveries looked up at once
#: Seconds to wait after the first and the second failure of our machines: a restart of a database
#: takes some seconds, a full disk some longer.
BACKOFF_S = (5.0, 60.0)

#: Carries out an intent inside the transaction that marks its delivery done. The first argument is
#: the session to be handed to `bot.store`'s functions. An `Ignored` it returns is kept with the delivery;
#: other answers are not looked at.
Handler = Callable[[Session, Intent], object]

log = structlog.get_logger(__name__)

#: How long the reader waits for more once something has come: a burst is then read in one go. GitHub waits
#: for an acknowledgement, not for this.
BATCH_DELAY_S = 0.05


class InboxReader:
    """The thread that reads the inbox; sleeps until `wake` is called."""

    name = "inbox-reader"

    def __init__(
        self, database: Database, handle: Handler, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._database = database
        self._handle = handle
        self._clock = clock
        self._awake = threading.Event()
        self._not_before: dict[str, float] = {}  # deliveries that failed for now → when to try again

    def wake(self) -> None:
        """Something arrived, or time has passed."""
        self._awake.set()

    def run_forever(self, stop: threading.Event) -> None:
        """Reads until `stop` is set and `wake` called."""
        while not stop.is_set():
            self._awake.clear()
            try:
                self.drain(stop)
            except InfrastructureError as error:
                log.warning("inbox.unreadable", reason=str(error))
            except Exception:
                FAULTS.labels(loop=self.name).inc()
                log.exception("inbox.fault_contained")
            if not stop.is_set():  # set before the last `clear`, its `wake` is gone
                self._awake.wait()
                stop.wait(BATCH_DELAY_S)

    def drain(self, stop: threading.Event | None = None) -> int:
        """Reads what is pending and due, once; the number of deliveries settled.

        Raises InfrastructureError: the database does not work.
        """
        processed, after, more = 0, None, True
        while more:
            positions = self._pending(after)
            more = len(positions) == PAGE
            for position in positions:
                if stop is not None and stop.is_set():
                    return processed
                if self._not_before.get(position.id, 0.0) <= self._clock():
                    begun = time.thread_time()
                    with structlog.contextvars.bound_contextvars(delivery_id=position.id):
                        processed += self._read_contained(position.id)
                    if stop is not None:  # acknowledgements share the interpreter: leave them half of it,
                        stop.wait(time.thread_time() - begun)  # of which waiting for a database takes none
            after = positions[-1] if positions else after
        return processed

    def _pending(self, after: InboxPosition | None) -> list[InboxPosition]:
        with self._database.reading() as session:
            return inbox.pending(session, after, PAGE)

    def _read_contained(self, delivery: str) -> bool:
        """`_read`; a delivery whose result cannot be recorded is tried again later, behind the others."""
        try:
            return self._read(delivery)
        except InfrastructureError:
            raise
        except Exception:
            FAULTS.labels(loop=self.name).inc()
            log.exception("delivery.fault_contained", retry_in_s=BACKOFF_S[-1])
            self._not_before[delivery] = self._clock() + BACKOFF_S[-1]
            return False

    def _read(self, delivery: str) -> bool:
        """Reads one delivery; whether it is settled now."""
        try:
            self._process(delivery)
        except InternalError as error:
            self._record_internal_error(delivery, error)
        except InfrastructureError as error:
            return self._retry(delivery, error)
        except AssayError as error:
            self._record_failure(delivery, DeliveryState.FAILED, str(error))
        except Exception as error:  # noqa: BLE001 - logged and recorded; one bug must not stop the inbox
            self._record_internal_error(delivery, error)
        self._not_before.pop(delivery, None)
        return True

    def _process(self, delivery: str) -> None:
        with self._database.transaction(durable=False) as session:
            received = inbox.claim(session, delivery)
            if received is None:
                return
            parsed = events.parse_event(received.event, received.payload)
            answers = [self._handle(session, replace(intent, delivery=delivery)) for intent in parsed.intents]
            ignored_reasons = [answer.why for answer in answers if isinstance(answer, Ignored)]
            idle = parsed.ignored or (bool(ignored_reasons) and len(ignored_reasons) == len(answers))
            state = DeliveryState.IGNORED if idle else DeliveryState.DONE
            note = "; ".join(text for text in (parsed.note, *ignored_reasons) if text)
            inbox.record_result(session, delivery, state, note)
        log.info("delivery read", state=state.value, intents=len(parsed.intents), note=note)

    def _retry(self, delivery: str, error: Exception) -> bool:
        with self._database.transaction() as session:
            attempts = inbox.count_attempt(session, delivery, str(error))
        if attempts >= MAX_ATTEMPTS:
            reason = f"given up after {attempts} attempts: {error}"
            self._record_failure(delivery, DeliveryState.FAILED, reason)
            self._not_before.pop(delivery, None)
            return True
        self._not_before[delivery] = self._clock() + BACKOFF_S[attempts - 1]
        log.warning("delivery is tried again later", attempts=attempts, reason=str(error))
        return False

    def _record_failure(self, delivery: str, state: DeliveryState, reason: str) -> None:
        with self._database.transaction() as session:
            inbox.record_result(session, delivery, state, reason)
        log.warning("delivery failed", reason=reason)

    def _record_internal_error(self, delivery: str, error: Exception) -> None:
        log.error("a bug of Assay", exc_info=error)
        self._record_failure(
            delivery, DeliveryState.FAILED, f"a bug of Assay: {type(error).__name__}: {error}"
        )
