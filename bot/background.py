"""The work of a service beside answering requests: the inbox's reader, background threads, interval jobs.

`bot.wiring.service` creates the parts. `BackgroundWork` runs them in this process; `assay serve` runs it in a
process of its own (`bot.work_process`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Protocol

import structlog
from apscheduler.schedulers.background import BackgroundScheduler

from bot.errors import AssayError
from bot.metrics import Metrics
from bot.settings import Settings
from bot.store import Database
from bot.store.notifications import NotificationListener
from bot.webhooks.inbox_queue import Handler, InboxQueue
from bot.worker import Worker

#: Seconds between checkpoints of the database's log.
CHECKPOINT_S = 5.0
#: Seconds a background thread may take to stop; its work is repeated from its rows.
GRACE_S = 20.0

#: Seconds until a background thread that ended is restarted; doubled each time.
MIN_RESTART_S, MAX_RESTART_S = 5.0, 300.0

log = structlog.get_logger(__name__)


class Background(Protocol):
    """Work in its own thread while the service runs (`bot.loop.Loop`)."""

    @property
    def name(self) -> str:
        """The name in logs and /readyz."""

    def wake(self) -> None:
        """Ends its sleep, at least to check whether to stop."""

    def run_forever(self, stop: threading.Event) -> None:
        """Works until `stop` is set and `wake` called; returns soon after."""


@dataclass(frozen=True)
class IntervalJob:
    """A short function called at an interval, never concurrently with itself."""

    name: str
    seconds: float
    run: Callable[[], object]


@dataclass(frozen=True)
class ServiceParts:
    """The parts of a process."""

    handle: Handler
    backgrounds: tuple[Background, ...] = ()
    jobs: tuple[IntervalJob, ...] = ()


#: Creates the parts once the database is migrated.
Wiring = Callable[[Settings, Database], ServiceParts]


class _Thread:
    """A Background in its thread, and why it ended."""

    def __init__(self, work: Background, metrics: Metrics) -> None:
        self.name = work.name
        self._work = work
        self.stop = threading.Event()
        self.failure = ""
        self._trusted_at = 0.0  # on the monotonic clock
        self._metrics = metrics
        self.thread = threading.Thread(target=self._run, name=self.name, daemon=True)

    def request_stop(self) -> None:
        self.stop.set()
        self._work.wake()

    @property
    def ended(self) -> bool:
        return not self.thread.is_alive()

    @property
    def problem(self) -> str:
        """Why it does not work, or has not worked for long enough since its restart; "" if it does."""
        if self.ended:
            return self.failure or "its thread ended"
        return self.failure if time.monotonic() < self._trusted_at else str(getattr(self._work, "fault", ""))

    def _run(self) -> None:
        """Runs the work until `stop` is set, with restarts after a pause that doubles."""
        pause_s = MIN_RESTART_S
        while True:
            began = time.monotonic()
            try:
                self._work.run_forever(self.stop)
            except Exception as error:
                self.failure = f"{type(error).__name__}: {error}"
                log.exception("background_thread.failed", name=self.name, restart_in_s=pause_s)
            else:
                if self.stop.is_set():
                    return
                self.failure = "it returned before the service stopped"
                log.error("background_thread.exited", name=self.name, restart_in_s=pause_s)
            self._metrics.background_failures.labels(name=self.name).inc()
            if time.monotonic() - began > MAX_RESTART_S:
                pause_s = MIN_RESTART_S
            self._trusted_at = time.monotonic() + 2 * pause_s
            if self.stop.wait(pause_s):
                return
            pause_s = min(2 * pause_s, MAX_RESTART_S)


class Work(Protocol):
    """The work of a service, wherever it runs. Stopped work can be started again."""

    def start(self, settings: Settings, database: Database, metrics: Metrics) -> None:
        """Returns once everything runs; the database is migrated.

        Raises AssayError if a part cannot be created.
        """

    def stop(self) -> None:
        """Ends everything; work in progress is repeated later."""

    def wake(self) -> None:
        """Reads the inbox soon; from any thread."""

    def problems(self) -> dict[str, str]:
        """Part → failure; empty if all parts work."""


class BackgroundWork:
    """`Work` in threads of this process."""

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring
        self._threads: list[_Thread] = []
        self._reader: Worker | None = None
        self._open = ExitStack()

    def start(self, settings: Settings, database: Database, metrics: Metrics) -> None:
        """Starts the threads, then the interval jobs."""
        parts = self._wiring(settings, database)
        self._reader = Worker(InboxQueue(database, parts.handle))
        jobs = (IntervalJob("checkpoint", CHECKPOINT_S, database.checkpoint), *parts.jobs)
        listener = NotificationListener(database, {self._reader.name: self._reader.wake})
        with ExitStack() as stack:
            stack.callback(self._stop_threads)
            for work in (self._reader, *parts.backgrounds):
                thread = _Thread(work, metrics)
                thread.thread.start()
                self._threads.append(thread)
            stack.callback(listener.stop)
            listener.start()
            stack.callback(_schedule(jobs, metrics).shutdown)
            self._open = stack.pop_all()

    def stop(self) -> None:
        """Stops the jobs, then the threads; no effect if stopped."""
        self._open.close()

    def wake(self) -> None:
        """Wakes the inbox's reader."""
        if self._reader is not None:
            self._reader.wake()

    def problems(self) -> dict[str, str]:
        """Thread → failure."""
        return {each.name: each.problem for each in self._threads if each.problem}

    def _stop_threads(self) -> None:
        for thread in self._threads:
            thread.request_stop()
        for thread in self._threads:
            thread.thread.join(GRACE_S)
            if thread.thread.is_alive():
                log.warning("background_thread.stop_timed_out", name=thread.name)
        self._threads.clear()


def _schedule(jobs: tuple[IntervalJob, ...], metrics: Metrics) -> BackgroundScheduler:
    scheduler = BackgroundScheduler(
        job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None}
    )
    for job in jobs:
        scheduler.add_job(
            _run_job, "interval", args=[job, metrics], seconds=job.seconds, id=job.name, name=job.name
        )
    scheduler.start()
    return scheduler


def _run_job(job: IntervalJob, metrics: Metrics) -> None:
    try:
        job.run()
    except Exception as error:
        metrics.background_failures.labels(name=job.name).inc()
        if not isinstance(error, AssayError):
            raise  # a bug: APScheduler logs its traceback and continues
        log.warning("interval_job.failed", name=job.name, reason=str(error))
