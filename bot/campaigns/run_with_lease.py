"""Long work beside a step: it runs in a thread of its own, while the step's thread minds the lease.

Only the step's thread touches the database. When the campaign is superseded, or the process shuts down,
the work is asked to stop, what it has sent so far is kept, and the step ends.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, Protocol, TypeVar

from bot.campaigns.services import OnEvent
from bot.leases import POLL_S

R = TypeVar("R")

#: Events waiting to be written before the sender is made to wait; Crater bounds its queue of results at 64
#: too. A kill loses these and the batch being filled: enough to bridge a commit, little to do again.
QUEUE = 64


class EventSink:
    """Where the events of the work go, on the step's thread."""

    def add(self, event: dict[str, Any]) -> None:
        """Takes one event."""
        raise NotImplementedError

    def tick(self) -> None:
        """Called often; writes what is due, if anything is ever written."""

    def close(self) -> None:
        """Writes what is left, if anything is; also after a failure."""


class LeaseHolder(Protocol):
    """Whoever minds a lease while something works: a campaign's Context, or a job's Doing."""

    def heartbeat(self) -> None:
        """Renews the lease; raises Abandoned or Interrupted if the work must end."""

    def progress(self, done: int, total: int, note: str) -> None:
        """Tells whoever watches."""


class ProgressSink(EventSink):
    """Passes {"note": text} events on as progress."""

    def __init__(self, context: LeaseHolder) -> None:
        self._context = context

    def add(self, event: dict[str, Any]) -> None:
        """Shows the note."""
        self._context.progress(0, 0, str(event.get("note", "")))


def run_with_lease(
    context: LeaseHolder, work: Callable[[OnEvent, threading.Event], R], sink: EventSink | None = None
) -> R:
    """Runs `work(on_event, stop)` and returns its result, or raises what it raised.

    Raises Abandoned or Interrupted, after the work has ended, if the step must not go on.
    """
    sink = sink or ProgressSink(context)
    stop = threading.Event()
    events: queue.Queue[dict[str, Any] | None] = queue.Queue(QUEUE)
    with ThreadPoolExecutor(1, thread_name_prefix="campaign-work") as pool:
        future = pool.submit(copy_context().run, work, events.put, stop)
        future.add_done_callback(lambda _: events.put(None))
        try:
            _pump_events(context, events, sink)
        finally:
            stop.set()
            remaining = _drain_events(future, events)
            for event in remaining:
                sink.add(event)
            sink.close()
    return future.result()


def _pump_events(context: LeaseHolder, events: queue.Queue[dict[str, Any] | None], sink: EventSink) -> None:
    while True:
        try:
            event = events.get(timeout=POLL_S)
        except queue.Empty:
            pass
        else:
            if event is None:
                return
            sink.add(event)
        sink.tick()
        context.heartbeat()


def _drain_events(future: Future[Any], events: queue.Queue[dict[str, Any] | None]) -> list[dict[str, Any]]:
    """What still comes until the work has ended; taken at once, so that it never waits for a full queue."""
    remaining = []
    while not (future.done() and events.empty()):
        try:
            event = events.get(timeout=POLL_S)
        except queue.Empty:
            continue
        if event is not None:
            remaining.append(event)
    return remaining
