"""Collecting: missing parts of sources are migrated by several processes, within a time limit.

A process migrates several parts of one source in turn, since it needs seconds to import the library. A
complete part becomes a catalog, so a limit or a kill costs only the parts in progress; the next campaign
continues. A part that is cut off keeps its cases and gets twice the time when it is retried: every part
completes eventually, at less than twice its cost.
"""

from __future__ import annotations

import json
import os
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from contextvars import copy_context
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

import structlog

from bot.campaigns.plan.case_source import CaseSource, CatalogPart, SourceReport
from bot.errors import InfrastructureError, UsageError
from bot.runners.protocol import OnEvent

log = structlog.get_logger(__name__)

#: What collecting may take of a campaign's budget, or LEAST_S seconds where that is more: ONNX's node tests
#: take 6 s on an idle core and are there in any case. What it takes is taken from the budget.
SHARE, LEAST_S = 0.2, 60.0
#: Seconds after which a campaign runs what there is: with ranking, its first case runs within a minute.
FIRST_CASES_S = 50.0
#: Parts of a source that may fail before its others are left alone: a missing library fails them all.
FAILURES = 2
#: Parts of a process while other sources wait for their turn.
_PARTS_IN_TURN = 4
_POLL_S = 0.2  # how soon a stop or the end of the time is noticed
MAX_FAILURE = 300  # characters of a failure in reports; the log has all
_PROGRESS_EVERY = 100  # cases of a part between progress events

RunTool = Callable[[str, Sequence[str], OnEvent, threading.Event], None]
#: Errors that cost a part and not the campaign.
_PART_ERRORS = (InfrastructureError, UsageError)


def limit(budget: float) -> float:
    """Seconds of collecting for a campaign with this budget."""
    return max(LEAST_S, SHARE * budget)


def missing(cases: Iterable[CaseSource]) -> list[CatalogPart]:
    """The incomplete parts, sources in turn; those that were cut off come last.

    They need more time than was left for them, so the others go first.
    """
    missing_parts = [[part for part in one.parts() if not part.path.exists()] for one in cases]
    in_turn = [part for parts in zip_longest(*missing_parts) for part in parts if part is not None]
    return sorted(in_turn, key=lambda part: part.partial.exists())


def group_parts(parts: Iterable[CatalogPart], processes: int) -> list[tuple[CatalogPart, ...]]:
    """The parts in groups of one source each, sources in turn; order is kept otherwise."""
    by_source: dict[str, list[CatalogPart]] = defaultdict(list)
    for part in parts:
        by_source[part.source].append(part)
    size = max(1, -(-sum(map(len, by_source.values())) // processes))
    if len(by_source) > 1:
        size = min(size, _PARTS_IN_TURN)
    groups = [
        [tuple(of_source[start : start + size]) for start in range(0, len(of_source), size)]
        for of_source in by_source.values()
    ]
    return [group for in_turn in zip_longest(*groups) for group in in_turn if group is not None]


@dataclass
class Collector:
    """Migrates parts.

    corpus     where cases go
    run_tool   `Services.run_tool`
    processes  how many migrations run at a time
    monotonic  a clock, in seconds
    patience   source → seconds to go on with it beyond the time given, while it has no case
    failed     source → why a part of it could not be migrated
    """

    corpus: Path
    run_tool: RunTool
    processes: int
    monotonic: Callable[[], float]
    patience: Mapping[str, float] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    _failures: Counter[str] = field(default_factory=Counter)
    _errors: list[Exception] = field(default_factory=list)

    def collect(
        self, parts: Sequence[CatalogPart], seconds: float | None, on_event: OnEvent, stop: threading.Event
    ) -> None:
        """Migrates `parts`, in order, for at most `seconds`; None for no limit.

        A library may take longer than that to import on a busy machine. If the first case of a source comes
        late, half of the time is left for the source from then on.

        Sends {"note", "done", "total"} events. A failing part is logged and recorded in `failed`. Raises what
        is no infrastructure failure, after the rest is stopped.
        """
        work = _CollectionRun(self, seconds, on_event, stop, len(parts))
        with ThreadPoolExecutor(self.processes, thread_name_prefix="collecting") as pool:
            groups = group_parts(parts, self.processes)
            futures = {pool.submit(copy_context().run, work.group, group) for group in groups}
            try:
                _await(futures, work)
            except BaseException:
                work.halt()
                raise

    def record_failure(self, part: CatalogPart, error: Exception) -> None:
        """Logs and counts the failure of a part."""
        log.error("migration.failed", source=part.source, part=part.number, of=part.of, error=str(error))
        self._failures[part.source] += 1
        self.failed.setdefault(part.source, last_line(error))
        self._errors.append(error)

    def is_given_up(self, source: str) -> bool:
        """Whether the remaining parts of a source are skipped."""
        return self._failures[source] >= FAILURES

    def accounts(self, cases: Iterable[CaseSource]) -> list[SourceReport]:
        """How far each source is. Raises the first failure if there is no case at all."""
        found = [_with_failure(one.account(), self.failed) for one in cases]
        if self._errors and not any(account.cases for account in found):
            raise self._errors[0]
        return found


def last_line(error: Exception) -> str:
    """The last line of an error: the program's own message."""
    return next(reversed(str(error).strip().splitlines()), type(error).__name__)[:MAX_FAILURE]


def _with_failure(account: SourceReport, failed: Mapping[str, str]) -> SourceReport:
    return SourceReport(**(vars(account) | {"failed": failed.get(account.source, "")}))


def _await(futures: set[Future[None]], work: _CollectionRun) -> None:
    """Watches the clock until all parts are done or cut off."""
    while futures:
        done, futures = wait(futures, timeout=_POLL_S, return_when=FIRST_COMPLETED)
        work.stop_expired()
        for future in done:
            future.result()


class _CollectionRun:
    """One round of collecting, shared by the threads that each watch a process."""

    def __init__(
        self,
        collector: Collector,
        seconds: float | None,
        on_event: OnEvent,
        stop: threading.Event,
        total: int,
    ) -> None:
        self._collector, self._seconds, self._on_event, self._stop = collector, seconds, on_event, stop
        self._end = None if seconds is None else collector.monotonic() + seconds
        self._late_ends: dict[str, float] = {}  # of sources whose first case came when time was over
        self._patience = dict(collector.patience)
        self._total, self._done = total, 0
        self._lock = threading.Lock()
        # How to stop each process: its source, and when to.
        self._active: dict[threading.Event, tuple[str, float | None]] = {}
        self._halted = False

    def group(self, parts: Sequence[CatalogPart]) -> None:
        """Migrates parts of one source in turn, unless time is over or the source is given up."""
        left = deque(parts)
        while left and self._may_begin(left[0]):
            try:
                self._migrate(left)
            except _PART_ERRORS as error:  # costs one part: another process goes on with the next
                with self._lock:
                    self._collector.record_failure(left.popleft() if left else parts[-1], error)
            except BaseException:
                self._halted = True  # here, before this thread takes the next group
                raise

    def stop_expired(self) -> None:
        """Stops the parts whose time is over, or all on a stop."""
        present = self._collector.monotonic()
        with self._lock:
            for stop, (source, end) in self._active.items():
                late = end is not None and present >= end + self._patience.get(source, 0.0)
                if self._stop.is_set() or self._halted or late:
                    stop.set()

    def halt(self) -> None:
        self._halted = True
        self.stop_expired()

    def begin(self, part: CatalogPart, stop: threading.Event) -> bool:
        """Whether the process that `stop` ends may go on with this part; sets its deadline."""
        present = self._collector.monotonic()
        with self._lock:
            if self._is_over(present, part.source):
                return False
            end = self._end_of(part.source)
            self._active[stop] = part.source, end and max(end, present + 2 * part.cut_after())
            return True

    def note_case(self, source: str) -> None:
        """Moves the end of a source if its first case comes when time is over."""
        if source not in self._patience:
            return
        present = self._collector.monotonic()
        with self._lock:
            self._patience.pop(source, None)
            if self._seconds is not None and self._is_over(present, source):
                self._late_ends[source] = later = present + self._seconds / 2
                self._active = {
                    stop: (name, end and max(end, later) if name == source else end)
                    for stop, (name, end) in self._active.items()
                }

    def complete(self, part: CatalogPart, count: int) -> None:
        """Counts a part as done."""
        with self._lock:
            self._done += 1
        self.report(f"{part.name} migrated: {count} cases")

    def report(self, note: str) -> None:
        """Sends a progress event."""
        self._on_event({"note": note, "done": self._done, "total": self._total})

    def _may_begin(self, part: CatalogPart) -> bool:
        with self._lock:
            over = self._is_over(self._collector.monotonic(), part.source)
            return not over and not self._collector.is_given_up(part.source)

    def _is_over(self, present: float, source: str) -> bool:
        end = self._end_of(source)
        late = end is not None and present >= end
        return late or self._halted or self._stop.is_set()

    def _end_of(self, source: str) -> float | None:
        return self._late_ends.get(source, self._end)

    def _migrate(self, left: deque[CatalogPart]) -> None:
        """Runs a process for these parts; takes out those that are done, and all once time is over."""
        first, stop = left[0], threading.Event()
        arguments = [first.source, "--corpus", str(self._collector.corpus), *first.options]
        for part in left if first.of > 1 else ():
            arguments += ["--part", f"{part.number}/{part.of}"]
        try:
            with _PartsInTurn(self, left, stop, self._collector.monotonic) as parts:
                self._collector.run_tool("fuzzing.migrate", arguments, parts.take, stop)
                parts.finish()
        finally:
            with self._lock:
                self._active.pop(stop, None)


class _PartsInTurn:
    """Writes the events of a process that migrates parts in turn: each part ends with an end event.

    left  the parts that are not done; emptied once time is over
    stop  ends the process
    """

    def __init__(
        self,
        work: _CollectionRun,
        left: deque[CatalogPart],
        stop: threading.Event,
        monotonic: Callable[[], float],
    ) -> None:
        self._work, self._left, self._stop, self._monotonic = work, left, stop, monotonic
        self._files = ExitStack()
        self._writer: _CatalogWriter | None = None
        self._begun = 0.0

    def __enter__(self) -> _PartsInTurn:
        self._begin()
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()

    def take(self, event: dict[str, Any]) -> None:
        """Writes an event into the catalog of its part."""
        if self._writer is None:
            return
        part = self._left[0]
        if self._writer.add(event):
            self._work.note_case(part.source)
            if self._writer.count % _PROGRESS_EVERY == 0:
                self._work.report(f"{self._writer.count} cases migrated from {part.name}")
        if self._writer.ended:
            self._writer.keep()
            self._left.popleft()
            self._work.complete(part, self._writer.count)
            self._begin()

    def finish(self) -> None:
        """Keeps what a part gave before it was cut off; raises InfrastructureError if nothing cut it off."""
        if self._writer is not None:
            if not self._stop.is_set():
                raise InfrastructureError(
                    f"the migration of {self._left[0].name} ended without an end event; see its log"
                )
            self._writer.keep_partial(self._monotonic() - self._begun)
        self._left.clear()

    def _begin(self) -> None:
        """Opens the next part's catalog; stops the process if there is no time for it."""
        self._files.close()
        self._writer, self._begun = None, self._monotonic()
        if self._left and self._work.begin(self._left[0], self._stop):
            self._writer = self._files.enter_context(_CatalogWriter(self._left[0]))
        elif self._left:
            self._stop.set()


class _CatalogWriter:
    """Writes migration events as a catalog; deletes it unless `keep` or `keep_partial` is called."""

    def __init__(self, part: CatalogPart) -> None:
        self._part = part
        self._path = part.path.with_name(f".{part.path.name}.{os.getpid()}.{threading.get_ident()}")
        self.count = 0
        self.ended = False

    def __enter__(self) -> _CatalogWriter:
        """Raises InfrastructureError if the file cannot be made."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(self._path, "w", encoding="utf-8")
        except OSError as error:
            raise InfrastructureError(
                f"cannot write to {self._path.parent}: {error.strerror}; "
                "check ASSAY_DATA_DIR and its permissions"
            ) from error
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._path.unlink(missing_ok=True)

    def add(self, event: dict[str, Any]) -> bool:
        """Writes cases, the record of a search and skip counts; returns whether the event was a case."""
        kind = event.get("event")
        if kind == "case":
            self.count += 1
            self._line({name: value for name, value in event.items() if name != "event"})
        elif kind == "search":
            self._line({"search": {name: value for name, value in event.items() if name != "event"}})
        elif kind == "end":
            self.ended = True
            library = f"{event.get('library', '')} {event.get('version', '')}".strip()
            self._line({"library": library, "skipped": event.get("skipped", {})})
        return kind == "case"

    def keep(self) -> None:
        """Syncs and publishes the complete catalog."""
        self._publish(self._part.path)
        self._part.partial.unlink(missing_ok=True)

    def keep_partial(self, seconds: float) -> None:
        """Publishes an incomplete part; keeps an earlier attempt's cases if those were more."""
        earlier, _ = self._part.read()
        if sum("id" in line for line in earlier) > self.count:
            self._copy_cases(self._part.partial)
        self._line({"cut_after": max(seconds, self._part.cut_after())})
        self._publish(self._part.partial)

    def _copy_cases(self, path: Path) -> None:
        self._file.seek(0)
        self._file.truncate()
        with open(path, encoding="utf-8") as file:
            self._file.writelines(line for line in file if "cut_after" not in json.loads(line))

    def _publish(self, path: Path) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._path.replace(path)

    def _line(self, obj: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(obj, ensure_ascii=False) + "\n")
