"""Runs a shard as parts on several machines, and makes one shard's events of theirs.

Machines may be lost. What a lost one has sent stays; the rest runs elsewhere. So each outcome is passed on
once, and a lost machine says nothing about a compiler.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from typing import Any

import structlog

from bot.errors import RunnerError, RunnerLostError
from bot.runners.protocol import Event, OnEvent, Shard
from bot.runners.shard_events import ShardEventValidator
from fuzzing.execute.shard import Shard as CaseShard

log = structlog.get_logger(__name__)

#: Runs one part on one machine. Returns when it has ended, or soon after the event is set. Raises
#: RunnerLostError if the machine is gone.
RunPart = Callable[[CaseShard, OnEvent, threading.Event], None]

#: Attempts after the first one; the fourth machine lost in a row is no accident.
RETRIES = 3
#: Fewest cases of a part: below, the import of a compiler (0.1 to 3 s) costs more than they do.
MIN_CASES = 20
#: Most events of parts that wait to be written: a slow database slows the machines down.
_QUEUE = 256
_POLL_S = 0.2


def split_shard(shard: Shard, count: int) -> list[CaseShard]:
    """At most `count` parts. Each has cases of every rank, so that all begin with the most promising ones."""
    whole = CaseShard.from_json(shard.to_json())
    parts = max(1, min(count, len(whole.cases) // MIN_CASES))
    return [_changed(whole, cases=list(whole.cases[place::parts])) for place in range(parts)]


def run_parts(
    parts: Iterable[CaseShard],
    run_part: RunPart,
    on_event: OnEvent,
    stop: threading.Event,
    *,
    retries: int = RETRIES,
) -> None:
    """Runs all parts at once, and passes on one start, their outcomes, and one end. For `Runner.run`."""
    runs = [_PartRun(part, run_part, retries) for part in parts]
    stop_parts, begun = threading.Event(), time.monotonic()
    events: queue.Queue[Event | None] = queue.Queue(_QUEUE)

    def wake(_: Future[None]) -> None:
        with suppress(queue.Full):  # whoever reads it is awake
            events.put_nowait(None)

    on_event({"event": "start", "cases": sum(len(one.part.cases) for one in runs)})
    with ThreadPoolExecutor(len(runs), thread_name_prefix="part") as pool:
        futures = [pool.submit(copy_context().run, one.run, events.put, stop_parts) for one in runs]
        for future in futures:
            future.add_done_callback(wake)
        try:
            _pass_on(futures, events, on_event, stop)
        finally:
            stop_parts.set()
            _drain(futures, events)
    for future in futures:
        future.result()
    if not stop.is_set():
        on_event(_merge_ends([one.end for one in runs], time.monotonic() - begun))


def _pass_on(
    futures: list[Future[None]], events: queue.Queue[Event | None], on_event: OnEvent, stop: threading.Event
) -> None:
    """Passes on events until all parts have ended, one has failed, or `stop` is set.

    None among the events says that a part has ended.
    """
    while not stop.is_set():
        ended = all(future.done() for future in futures)
        try:
            if event := events.get(timeout=0 if ended else _POLL_S):
                on_event(event)
            continue
        except queue.Empty:
            pass
        if ended or any(future.done() and future.exception() is not None for future in futures):
            return


def _drain(futures: list[Future[None]], events: queue.Queue[Event | None]) -> None:
    """Discards what ending parts still send, so that none of them blocks."""
    while not all(future.done() for future in futures):
        try:
            events.get(timeout=_POLL_S)
        except queue.Empty:
            continue


class _PartRun:
    """One part until it has ended, on as many machines as that takes."""

    def __init__(self, part: CaseShard, run_part: RunPart, retries: int) -> None:
        self.part, self._run_part, self._retries = part, run_part, retries
        self._seen: set[tuple[str, int]] = set()
        self.end: Event = {}

    def run(self, on_event: OnEvent, stop: threading.Event) -> None:
        begun = time.monotonic()
        for attempt in range(self._retries + 1):
            rest = self._rest(time.monotonic() - begun)
            if rest is None or stop.is_set():
                return
            try:
                self._attempt(rest, on_event, stop)
            except RunnerLostError as error:
                log.warning("runner.lost", attempt=attempt + 1, left=len(rest.cases), reason=str(error))
                if attempt == self._retries:
                    raise RunnerError(
                        f"{attempt + 1} runners were lost one after the other: {error}"
                    ) from error
            else:
                return

    def _attempt(self, rest: CaseShard, on_event: OnEvent, stop: threading.Event) -> None:
        def take(event: Event) -> None:
            if event["event"] == "end":
                self.end = event
            elif event["event"] == "outcome":
                key = event["outcome"]["case"], event["repeat"]
                if key not in self._seen:
                    self._seen.add(key)
                    on_event(event)

        events = ShardEventValidator(rest, take)
        self._run_part(rest, events.take, stop)
        if not events.ended and not stop.is_set():
            raise RunnerError("a runner returned before its part of the shard had ended; see its log")

    def _rest(self, elapsed: float) -> CaseShard | None:
        """The part without the cases that are done; None if no case or no time is left."""
        done = Counter(case for case, _ in self._seen)
        cases = [case for case in self.part.cases if done[case] < self.part.repeats]
        budget = self.part.budget_s
        left = None if budget is None else budget - elapsed
        if not cases or (left is not None and left <= 0):
            self.end = {"event": "end", "stopped": "budget" if cases else ""}
            return None
        return _changed(self.part, cases=cases, budget_s=left)


def _merge_ends(ends: list[Event], seconds: float) -> Event:
    """One end event: counts and times are sums, `seconds` is the wall time of the whole."""
    merged: Event = {"event": "end", "seconds": seconds, "stopped": "", "versions": {}}
    merged["stopped"] = next((end["stopped"] for end in ends if end.get("stopped")), "")
    for name in ("outcomes", "respawns", "busy"):
        merged[name] = sum(end.get(name, 0) for end in ends)
    for name in ("phases", "cached"):
        total: Counter[str] = Counter()
        for end in ends:
            total.update(end.get(name, {}))
        merged[name] = dict(total)
    for end in ends:
        merged["versions"] |= end.get("versions", {})
    return merged


def _changed(shard: CaseShard, **changes: Any) -> CaseShard:
    return CaseShard.from_json(shard.to_json() | changes)
