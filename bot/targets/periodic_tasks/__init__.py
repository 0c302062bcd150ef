"""Periodic tasks, one file each, found by its name:

    @periodic_task("redelivery", interval=timedelta(hours=1), needs_app=True)
    def redeliver(context: TaskContext) -> TaskResult: ...

`bot.targets.task_queue` hands them out, each in one process at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import structlog

from bot.errors import EXPECTED_ERRORS
from bot.github.limits import ThrottledError
from bot.leases import Interrupted, LeaseLost
from fuzzing.registry import Registry

if TYPE_CHECKING:
    from bot.targets.dependencies import Dependencies


log = structlog.get_logger(__name__)

#: These end a task at once; the current item did not cause them.
_SIGNALS = (LeaseLost, Interrupted, ThrottledError)


@contextmanager
def contain_faults(item: str, on_fault: Callable[[Exception], None] = lambda _: None) -> Iterator[None]:
    """Confines an exception to the item that caused it; the task continues with the next one.

    Logs a warning if GitHub refused or a machine failed, and an error with its traceback for a bug of Assay.

    on_fault  called with the exception; an exception of its own ends the task
    """
    try:
        yield
    except _SIGNALS:
        raise
    except EXPECTED_ERRORS as error:
        log.warning("item.failed", item=item, error=str(error))
        on_fault(error)
    except Exception as bug:
        log.exception("item.failed", item=item)
        on_fault(bug)


@dataclass(frozen=True)
class TaskResult:
    """A note of one line, and the state for the next run (None: unchanged)."""

    note: str
    saved_state: dict[str, Any] | None = None


@dataclass(frozen=True)
class TaskContext:
    """The context of one run.

    at           when it began
    last         when the task last ended, None for the first time
    saved_state  the state of the last result
    heartbeat    renews the lease; raises a signal of `bot.leases` if the run must end
    """

    dependencies: Dependencies
    at: datetime
    last: datetime | None = None
    saved_state: Mapping[str, Any] = field(default_factory=dict)
    heartbeat: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class PeriodicTask:
    """A registered task.

    interval      the shortest time between two runs
    needs_github  whether it is skipped without credentials
    needs_app     whether it is skipped with a personal token
    """

    name: str
    interval: timedelta
    run: Callable[[TaskContext], TaskResult]
    needs_github: bool = False
    needs_app: bool = False


_TASKS: Registry[PeriodicTask] = Registry("periodic task", __name__)


def periodic_task(
    name: str, *, interval: timedelta, needs_github: bool = False, needs_app: bool = False
) -> Callable[[Callable[[TaskContext], TaskResult]], Callable[[TaskContext], TaskResult]]:
    """Decorator: registers a task."""

    def register(run: Callable[[TaskContext], TaskResult]) -> Callable[[TaskContext], TaskResult]:
        _TASKS.add(PeriodicTask(name, interval, run, needs_github or needs_app, needs_app), name)
        return run

    return register


def list_tasks() -> tuple[PeriodicTask, ...]:
    """All tasks, sorted by name."""
    return tuple(_TASKS.get(name) for name in _TASKS.names())
