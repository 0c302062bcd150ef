"""Collecting: missing parts of sources are migrated by several processes, within a time limit.

A complete part becomes a catalog, so a limit or a kill costs only the parts in progress; the next campaign
continues. A part that is cut off keeps its cases and gets twice the time when it is retried: every part
completes eventually, at less than twice its cost.
"""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
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


@dataclass
class Collector:
    """Migrates parts.

    corpus     where cases go
    run_tool   `Services.run_tool`
    processes  how many migrations run at a time
    monotonic  a clock, in seconds
    failed     source → why a part of it could not be migrated
    """

    corpus: Path
    run_tool: RunTool
    processes: int
    monotonic: Callable[[], float]
    failed: dict[str, str] = field(default_factory=dict)
    _failures: Counter[str] = field(default_factory=Counter)
    _errors: list[Exception] = field(default_factory=list)

    def collect(
        self, parts: Sequence[CatalogPart], seconds: float | None, on_event: OnEvent, stop: threading.Event
    ) -> None:
        """Migrates `parts`, in order, for at most `seconds`; None for no limit.

        Sends {"note", "done", "total"} events. A failing part is logged and recorded in `failed`. Raises what
        is no infrastructure failure, after the rest is stopped.
        """
        end = None if seconds is None else self.monotonic() + seconds
        work = _CollectionRun(self, end, on_event, stop, len(parts))
        with ThreadPoolExecutor(self.processes, thread_name_prefix="collecting") as pool:
            futures = {pool.submit(copy_context().run, work.part, part) for part in parts}
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
        self, collector: Collector, end: float | None, on_event: OnEvent, stop: threading.Event, total: int
    ) -> None:
        self._collector, self._end, self._on_event, self._stop = collector, end, on_event, stop
        self._total, self._done = total, 0
        self._lock = threading.Lock()
        self._active: dict[threading.Event, float | None] = {}  # how to stop each part, and when
        self._halted = False

    def part(self, part: CatalogPart) -> None:
        """Migrates one part, unless time is over or its source is given up."""
        begun = self._collector.monotonic()
        with self._lock:
            if self._is_over(begun) or self._collector.is_given_up(part.source):
                return
            stop = threading.Event()
            self._active[stop] = self._deadline(part, begun)
        try:
            self._migrate(part, begun, stop)
        except _PART_ERRORS as error:
            with self._lock:
                self._collector.record_failure(part, error)
        except BaseException:
            self._halted = True  # here, before this thread takes the next part
            raise
        finally:
            with self._lock:
                del self._active[stop]

    def stop_expired(self) -> None:
        """Stops the parts whose time is over, or all on a stop."""
        present = self._collector.monotonic()
        with self._lock:
            for stop, end in self._active.items():
                if self._stop.is_set() or self._halted or (end is not None and present >= end):
                    stop.set()

    def halt(self) -> None:
        self._halted = True
        self.stop_expired()

    def _deadline(self, part: CatalogPart, begun: float) -> float | None:
        return None if self._end is None else max(self._end, begun + 2 * part.cut_after())

    def _is_over(self, present: float) -> bool:
        late = self._end is not None and present >= self._end
        return late or self._halted or self._stop.is_set()

    def _migrate(self, part: CatalogPart, begun: float, stop: threading.Event) -> None:
        arguments = [part.source, "--corpus", str(self._collector.corpus), *part.options]
        if part.of > 1:
            arguments += ["--part", f"{part.number}/{part.of}"]
        with _CatalogWriter(part) as writer:

            def take(event: dict[str, Any]) -> None:
                if writer.add(event) and writer.count % _PROGRESS_EVERY == 0:
                    self._report_progress(f"{writer.count} cases migrated from {_part_name(part)}")

            self._collector.run_tool("fuzzing.migrate", arguments, take, stop)
            if writer.ended:
                writer.keep()
                with self._lock:
                    self._done += 1
                self._report_progress(f"{_part_name(part)} migrated: {writer.count} cases")
            elif not stop.is_set():
                raise InfrastructureError(
                    f"the migration of {_part_name(part)} ended without an end event; see its log"
                )
            else:
                writer.keep_partial(self._collector.monotonic() - begun)

    def _report_progress(self, note: str) -> None:
        self._on_event({"note": note, "done": self._done, "total": self._total})


def _part_name(part: CatalogPart) -> str:
    return part.source if part.of == 1 else f"{part.source}, part {part.number} of {part.of}"


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
