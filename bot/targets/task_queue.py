"""The queue of periodic tasks: due ones run one after another, each in one process at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog

from bot.leases import Lease, LeaseLost
from bot.store import periodic_tasks as rows
from bot.store.periodic_tasks import ClaimedTask
from bot.targets.dependencies import Dependencies
from bot.targets.periodic_tasks import PeriodicTask, TaskContext, TaskResult, list_tasks
from bot.worker import Queue, claim_row

#: The duration of a lease, renewed after a third of it: a request to GitHub may take half a minute.
LEASE = timedelta(minutes=2)
#: Seconds between two checks for due tasks; a cron line's unit is a minute.
IDLE_S = 5.0

log = structlog.get_logger(__name__)


class TaskQueue(Queue):
    """The periodic tasks that this process can run. A failed one runs again when it is next due."""

    name = "periodic-tasks"

    def __init__(self, dependencies: Dependencies, tasks: Sequence[PeriodicTask] | None = None) -> None:
        self.idle_s = IDLE_S
        self._dependencies = dependencies
        self._tasks = tuple(
            task for task in (list_tasks() if tasks is None else tasks) if self._is_available(task)
        )

    def release_other_leases(self, owner: str) -> None:
        """Frees the leases of all other owners."""
        with self._dependencies.database.transaction() as session:
            rows.release_other_leases(session, owner)

    def claim(self, owner: str, stop: threading.Event) -> Iterator[_TaskRun]:
        """Every due task once."""
        for task in self._tasks:
            begun = self._dependencies.clock()
            claimed = self._claim(task, owner, begun)
            if claimed is not None:
                yield _TaskRun(self._dependencies, task, claimed, owner, begun, stop)

    def _claim(self, task: PeriodicTask, owner: str, at: datetime) -> ClaimedTask | None:
        return claim_row(
            self._dependencies.database,
            lambda session: rows.is_due(session, task.name, at, task.interval),
            lambda session: rows.claim(session, task.name, owner, at, task.interval, LEASE),
        )

    def _is_available(self, task: PeriodicTask) -> bool:
        github = self._dependencies.github
        if github is None:
            return not task.needs_github
        return github.is_app or not task.needs_app


@dataclass
class _TaskRun:
    """A claimed task."""

    dependencies: Dependencies
    task: PeriodicTask
    claimed: ClaimedTask
    owner: str
    begun: datetime
    stop: threading.Event
    attempt: int = 1
    _lease: Lease = field(init=False)

    def __post_init__(self) -> None:
        self._lease = Lease(
            self.stop,
            self._renew,
            renew_s=LEASE.total_seconds() / 3,
            monotonic=lambda: self.dependencies.clock().timestamp(),
        )

    @property
    def log_fields(self) -> Mapping[str, object]:
        """The name of the task."""
        return {"task": self.task.name}

    def work(self) -> None:
        """Runs the task and stores its result."""
        last, saved_state = self.claimed.last, self.claimed.saved_state
        context = TaskContext(self.dependencies, self.begun, last, saved_state, self._lease.heartbeat)
        done = self.task.run(context)
        self._write(done)
        log.info("periodic_task.done", note=done.note)

    def release_lease(self) -> None:
        """Releases the task."""
        with self.dependencies.database.transaction(durable=False) as session:
            rows.release_lease(session, self.task.name, self.owner)

    def postpone(self, error: Exception, seconds: float) -> None:
        """Leaves the task leased: it runs again after its lease."""

    def fail(self, error: Exception) -> None:
        """Stores the reason as the note."""
        self._write(TaskResult(f"failed: {error}"))

    def record_internal_error(self, bug: Exception) -> None:
        """Stores the error as the note."""
        self._write(TaskResult(f"a bug of Assay: {type(bug).__name__}: {bug}"))

    def _write(self, done: TaskResult) -> None:
        with self.dependencies.database.transaction(durable=False) as session:
            rows.done(session, self.task.name, self.owner, self.begun, done.note, done.saved_state)

    def _renew(self) -> None:
        with self.dependencies.database.transaction(durable=False) as session:
            if not rows.renew(session, self.task.name, self.owner, self.dependencies.clock() + LEASE):
                raise LeaseLost(self.task.name)
