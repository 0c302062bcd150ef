"""Runs long work in its own thread while the step's thread renews the lease.

Only the step's thread uses the database. When the campaign is superseded or the process shuts down, the work
is asked to stop, its events so far are kept, and the step ends.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, Protocol, TypeVar

from bot.leases import POLL_S
from bot.runners.protocol import OnEvent

R = TypeVar("R")

#: Most queued events (Crater bounds its queue at 64 too). A kill loses these and the batch being filled.
QUEUE = 64


class EventSink:
    """Receives the events of the work, on the step's thread."""

    def add(self, event: dict[str, Any]) -> None:
        """Takes one event."""
        raise NotImplementedError

    def tick(self) -> None:
        """Called at least every POLL_S seconds; may write."""

    def close(self) -> None:
        """Writes what is left; also called after a failure."""


class LeaseHolder(Protocol):
    """What renews a lease while work runs: a campaign's Context or a JobContext."""

    def heartbeat(self) -> None:
        """Renews the lease; raises LeaseLost or Interrupted if the work must end."""

    def progress(self, done: int, total: int, note: str) -> None:
        """Reports progress."""


class ProgressSink(EventSink):
    """Passes {"note": text} events on as progress."""

    def __init__(self, context: LeaseHolder) -> None:
        self._context = context

    def add(self, event: dict[str, Any]) -> None:
        """Reports the note."""
        self._context.progress(0, 0, str(event.get("note", "")))


def run_with_lease(
    context: LeaseHolder,
    work: Callable[[OnEvent, threading.Event], R],
    sink: EventSink | None = None,
    *,
    end_early: threading.Event | None = None,
) -> R:
    """Runs `work(on_event, stop)`; returns its result or raises its exception.

    end_early  once set, the work is asked to stop, and the step goes on with what there is

    Raises LeaseLost or Interrupted, after the work has ended, if the step must not continue.
    """
    sink = sink or ProgressSink(context)
    stop = threading.Event()
    events: queue.Queue[dict[str, Any] | None] = queue.Queue(QUEUE)
    with ThreadPoolExecutor(1, thread_name_prefix="campaign-work") as pool:
        future = pool.submit(copy_context().run, work, events.put, stop)
        future.add_done_callback(lambda _: events.put(None))
        try:
            _pump_events(context, events, sink, stop, end_early or threading.Event())
        finally:
            stop.set()
            remaining = _drain_events(future, events)
            for event in remaining:
                sink.add(event)
            sink.close()
    return future.result()


def _pump_events(
    context: LeaseHolder,
    events: queue.Queue[dict[str, Any] | None],
    sink: EventSink,
    stop: threading.Event,
    end_early: threading.Event,
) -> None:
    while True:
        if end_early.is_set():
            stop.set()
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
    """The remaining events; read at once, so that the work never blocks on a full queue."""
    remaining = []
    while not (future.done() and events.empty()):
        try:
            event = events.get(timeout=POLL_S)
        except queue.Empty:
            continue
        if event is not None:
            remaining.append(event)
    return remaining
