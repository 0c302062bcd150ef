"""The parts of a service process: database, inbox, background threads, interval jobs.

They are started in this order and stopped in reverse; `bot.wiring.service` creates them.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Protocol

import structlog
from apscheduler.schedulers.background import BackgroundScheduler

from bot.data_lock import DataLock
from bot.errors import AssayError, InfrastructureError
from bot.metrics import Metrics
from bot.settings import Settings
from bot.store import Database
from bot.webhooks.inbox_queue import Handler, InboxQueue
from bot.webhooks.inbox_writer import InboxWriter
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


class Service:
    """Opens and closes all parts; `problems` lists failures."""

    def __init__(self, settings: Settings, wiring: Wiring) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.database: Database | None = None
        self.writer: InboxWriter | None = None
        self._wiring = wiring
        self._threads: list[_Thread] = []
        self._open: ExitStack | None = None

    def open(self) -> None:
        """Starts everything; no effect if open.

        Raises InfrastructureError if another service holds the data folder, or the database fails.
        """
        if self._open is not None:
            return
        with ExitStack() as stack:
            if self.settings.database_url.startswith("sqlite:"):
                lock = DataLock(self.settings.data_dir)
                lock.acquire()
                stack.callback(lock.release)
            database = Database(self.settings.database_url)
            stack.callback(database.close)
            database.migrate()
            self.metrics.watch(database)
            services = self._wiring(self.settings, database)
            reader = Worker(InboxQueue(database, services.handle))
            jobs = (
                IntervalJob("checkpoint", CHECKPOINT_S, database.checkpoint),
                *services.jobs,
            )
            stack.callback(self._stop_threads)
            for work in (reader, *services.backgrounds):
                self._start_thread(work)
            stack.callback(self._request_stop)
            writer = InboxWriter(database, reader.wake)
            writer.start()
            stack.callback(writer.stop)
            scheduler = self._schedule(jobs)
            stack.callback(scheduler.shutdown)
            self.database, self.writer = database, writer
            # Imported objects are never freed; collecting them would cost 100 ms each time.
            gc.collect()
            gc.freeze()
            self._open = stack.pop_all()

    def close(self) -> None:
        """Stops everything, newest first; no effect if closed."""
        if self._open is not None:
            self._open.close()
            self._open = None
            self.database = self.writer = None

    def problems(self) -> dict[str, str]:
        """Part → failure; empty if all parts work."""
        database, writer = self.database, self.writer
        if database is None or writer is None:
            return {"service": "it is not started"}
        found = {each.name: each.problem for each in self._threads if each.problem}
        if writer.problem:
            found["inbox-writer"] = writer.problem
        try:
            if not database.is_migrated():
                found["database"] = "its tables are not those of this version; start this version once"
        except InfrastructureError as error:
            found["database"] = str(error)
        return found

    def _start_thread(self, work: Background) -> None:
        thread = _Thread(work, self.metrics)
        thread.thread.start()
        self._threads.append(thread)

    def _request_stop(self) -> None:
        for thread in self._threads:
            thread.request_stop()

    def _stop_threads(self) -> None:
        for thread in self._threads:
            thread.request_stop()
            thread.thread.join(GRACE_S)
            if thread.thread.is_alive():
                log.warning("background_thread.stop_timed_out", name=thread.name)
        self._threads.clear()

    def _schedule(self, jobs: tuple[IntervalJob, ...]) -> BackgroundScheduler:
        scheduler = BackgroundScheduler(
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None}
        )
        for job in jobs:
            scheduler.add_job(
                self._run_job, "interval", args=[job], seconds=job.seconds, id=job.name, name=job.name
            )
        scheduler.start()
        return scheduler

    def _run_job(self, job: IntervalJob) -> None:
        try:
            job.run()
        except Exception as error:
            self.metrics.background_failures.labels(name=job.name).inc()
            if not isinstance(error, AssayError):
                raise  # a bug: APScheduler logs its traceback and continues
            log.warning("interval_job.failed", name=job.name, reason=str(error))
