"""The scheduler: runs due periodic tasks, one after another, each in one process at a time."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import structlog

from bot.leases import Lease, LeaseLost
from bot.loop import Loop
from bot.store import periodic_tasks as rows
from bot.store.periodic_tasks import ClaimedTask
from bot.targets.dependencies import Dependencies
from bot.targets.periodic_tasks import PeriodicTask, TaskContext, TaskResult, list_tasks

#: The duration of a lease, renewed after a third of it: a request to GitHub may take half a minute.
LEASE = timedelta(minutes=2)
#: Seconds between two checks for due tasks; a cron line's unit is a minute.
IDLE_S = 5.0

log = structlog.get_logger(__name__)


class Scheduler(Loop):
    """Runs periodic tasks while the service runs. Any number of processes may have one."""

    def __init__(self, dependencies: Dependencies, tasks: Sequence[PeriodicTask] | None = None) -> None:
        super().__init__("periodic-tasks", IDLE_S)
        self._dependencies = dependencies
        self._tasks = tuple(
            task for task in (list_tasks() if tasks is None else tasks) if self._is_available(task)
        )

    def start(self, *, free_other_leases: bool = False) -> None:
        """Call once before `run_forever`. `free_other_leases`: no other process runs."""
        if free_other_leases:
            with self._dependencies.database.transaction() as session:
                rows.release_other_leases(session, self.owner)

    def run_once(self, stop: threading.Event | None = None, /) -> bool:
        """Runs every due task once."""
        return bool(self.run_due(stop))

    def run_due(self, stop: threading.Event | None = None) -> list[str]:
        """Runs the due tasks once; returns the names of those this process claimed."""
        stop = stop or threading.Event()
        run = []
        for task in self._tasks:
            if stop.is_set():
                break
            begun = self._dependencies.clock()
            claimed = self._claim(task, begun)
            if claimed is not None:
                run.append(task.name)
                self.process(_TaskRun(self._dependencies, task, claimed, self.owner, begun, stop))
        return run

    def _is_available(self, task: PeriodicTask) -> bool:
        github = self._dependencies.github
        if github is None:
            return not task.needs_github
        return github.is_app or not task.needs_app

    def _claim(self, task: PeriodicTask, at: datetime) -> ClaimedTask | None:
        with self._dependencies.database.reading() as session:
            if not rows.is_due(session, task.name, at, task.interval):
                return None
        with self._dependencies.database.transaction(durable=False) as session:
            return rows.claim(session, task.name, self.owner, at, task.interval, LEASE)


class _TaskRun:
    """A claimed task. A failed one runs again when it is next due."""

    def __init__(
        self,
        dependencies: Dependencies,
        task: PeriodicTask,
        claimed: ClaimedTask,
        owner: str,
        begun: datetime,
        stop: threading.Event,
    ) -> None:
        self._dependencies, self._task, self._claimed, self._owner, self._begun = (
            dependencies,
            task,
            claimed,
            owner,
            begun,
        )
        self._lease = Lease(
            stop,
            self._renew,
            renew_s=LEASE.total_seconds() / 3,
            monotonic=lambda: dependencies.clock().timestamp(),
        )

    @property
    def log_fields(self) -> Mapping[str, object]:
        """The name of the task."""
        return {"task": self._task.name}

    def work(self) -> None:
        """Runs the task and stores its result."""
        work = TaskContext(
            self._dependencies,
            self._begun,
            self._claimed.last,
            self._claimed.saved_state,
            self._lease.heartbeat,
        )
        done = self._task.run(work)
        self._write(done)
        log.info("periodic_task.done", note=done.note)

    def release_lease(self) -> None:
        """Releases the task."""
        with self._dependencies.database.transaction(durable=False) as session:
            rows.release_lease(session, self._task.name, self._owner)

    def wait(self) -> float | None:
        """None: the task runs again when it is due."""
        return None

    def postpone(self, error: Exception, seconds: float) -> None:
        """Not called, because `wait` returns None."""
        raise NotImplementedError

    def fail(self, error: Exception) -> None:
        """Stores the reason as the note."""
        self._write(TaskResult(f"failed: {error}"))

    def record_internal_error(self, bug: Exception) -> None:
        """Stores the error as the note."""
        self._write(TaskResult(f"a bug of Assay: {type(bug).__name__}: {bug}"))

    def _write(self, done: TaskResult) -> None:
        with self._dependencies.database.transaction(durable=False) as session:
            rows.done(session, self._task.name, self._owner, self._begun, done.note, done.saved_state)

    def _renew(self) -> None:
        with self._dependencies.database.transaction(durable=False) as session:
            if not rows.renew(session, self._task.name, self._owner, self._dependencies.clock() + LEASE):
                raise LeaseLost(self._task.name)
