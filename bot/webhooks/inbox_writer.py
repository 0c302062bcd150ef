"""Stores deliveries: one thread, which commits together whatever came in while it was committing.

The event loop only puts a delivery into a queue and awaits its future, so a slow disk delays
acknowledgements but blocks nothing; and one fsync serves all who waited for it.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from bot.errors import DeliveryError, InfrastructureError
from bot.store import Database, inbox, now

#: Deliveries in one transaction; more only lengthens the wait of the first.
BATCH = 64
#: Bytes after which a batch is full: it is one message to PostgreSQL, copied a few times on its way.
BATCH_BYTES = 16 * 1024 * 1024
#: Bytes waiting to be stored before newcomers are turned away: ten deliveries of the largest kind.
MAX_WAITING_BYTES = 256 * 1024 * 1024
#: Seconds that a failure to store keeps the service from being ready.
FAILURE_SHOWN_S = 30.0


@dataclass
class _Waiting:
    id: str
    event: str
    payload: bytes
    stored: Future[bool] = field(default_factory=Future)


class InboxWriter:
    """Stores deliveries in order of arrival; `wake` is called after each commit."""

    def __init__(self, database: Database, wake: Callable[[], None]) -> None:
        self._database = database
        self._wake = wake
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._bytes = 0  # waiting; touched by the event loop alone
        self._last: datetime | None = None
        self._ended = False
        self._failure = ""
        self._failed_at = 0.0
        self._thread = threading.Thread(target=self._run, name="inbox-writer", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stores what is waiting, then ends the thread."""
        self._queue.put(None)
        self._thread.join()

    @property
    def problem(self) -> str:
        """Why deliveries are answered 503 now; "" while they are stored.

        A failure counts for FAILURE_SHOWN_S: a proxy that asks may send no deliveries meanwhile.
        """
        if not self._thread.is_alive():
            return "its thread ended"
        if self._bytes > MAX_WAITING_BYTES - BATCH_BYTES:
            return "too many deliveries are waiting to be stored"
        recent = time.monotonic() - self._failed_at < FAILURE_SHOWN_S
        return self._failure if recent else ""

    async def store(self, delivery: str, event: str, payload: bytes) -> bool:
        """True once the delivery is on disk; False if its id was known. Call from one event loop.

        Raises DeliveryError 503 when too much is waiting, InfrastructureError when the database fails.
        """
        if self._bytes and self._bytes + len(payload) > MAX_WAITING_BYTES:
            raise DeliveryError(503, "too many deliveries are waiting to be stored; redeliver this one later")
        waiting = _Waiting(delivery, event, payload)
        self._bytes += len(payload)
        try:
            self._queue.put(waiting)
            if self._ended:  # perhaps before the put: then no thread resolves the future
                self._refuse_waiting()
            return await asyncio.wrap_future(waiting.stored)
        finally:
            self._bytes -= len(payload)

    def _run(self) -> None:
        try:
            stopping = False
            while not stopping:
                batch, stopping = self._next_batch()
                if batch:
                    self._store(batch)
        finally:
            self._ended = True
            self._refuse_waiting()

    def _refuse_waiting(self) -> None:
        while True:
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return
            if item is not None:
                _resolve_future(
                    item.stored, InfrastructureError("the service is stopping, or its inbox writer died")
                )

    def _next_batch(self) -> tuple[list[_Waiting], bool]:
        batch: list[_Waiting] = []
        size = 0
        item = self._queue.get()
        while item is not None:
            batch.append(item)
            size += len(item.payload)
            if len(batch) == BATCH or size >= BATCH_BYTES:
                return batch, False
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return batch, False
        return batch, True

    def _store(self, batch: list[_Waiting]) -> None:
        try:
            with self._database.autocommit() as session:  # GitHub waits for our answer
                results = inbox.store(
                    session,
                    [
                        inbox.ReceivedDelivery(item.id, item.event, item.payload, self._next_timestamp())
                        for item in batch
                    ],
                )
        except InfrastructureError as error:
            self._failure, self._failed_at = f"deliveries cannot be stored: {error}", time.monotonic()
            for item in batch:
                _resolve_future(item.stored, error)
            return
        except BaseException as error:
            for item in batch:  # else requests would wait for ever for a thread that has ended
                _resolve_future(item.stored, error)
            raise
        self._failure = ""
        for item, result in zip(batch, results, strict=True):
            _resolve_future(item.stored, result)
        self._wake()

    def _next_timestamp(self) -> datetime:
        """The time, but always later than before: it is the order of arrival."""
        moment = now()
        if self._last is not None and moment <= self._last:
            moment = self._last + timedelta(microseconds=1)
        self._last = moment
        return moment


def _resolve_future(future: Future[bool], result: bool | BaseException) -> None:
    if not future.set_running_or_notify_cancel():
        return  # the request was cancelled; what was stored stays stored
    if isinstance(result, BaseException):
        future.set_exception(result)
    else:
        future.set_result(result)
