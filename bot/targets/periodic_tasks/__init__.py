"""Duties: what is done now and then besides answering events. One small file each, found by its name:

    @duty("redelivery", every=timedelta(hours=1), asks=True)
    def redeliver(work: Work) -> Done: ...

`bot.targets.scheduler` does them, one process at a time however many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from fuzzing.registry import Registry

if TYPE_CHECKING:
    from bot.targets.dependencies import Dependencies


@dataclass(frozen=True)
class TaskResult:
    """What came of it: one line for people, and what to know the next time (None: as before)."""

    note: str
    saved_state: dict[str, Any] | None = None


@dataclass(frozen=True)
class TaskContext:
    """What a duty works with.

    at      when it began
    last    when it was done before, None for the first time
    memory  what it left to be remembered
    heartbeat    to be called now and then: keeps the lease; raises a signal of `bot.leases` to end now
    """

    dependencies: Dependencies
    at: datetime
    last: datetime | None = None
    saved_state: Mapping[str, Any] = field(default_factory=dict)
    heartbeat: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class PeriodicTask:
    """A registered duty.

    interval   the least time between two times it is done
    needs_github    whether GitHub is asked: it is left where nobody can log in there
    needs_app  whether it is the App that asks: it is left where a personal token is used
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
    """Registers a duty."""

    def register(run: Callable[[TaskContext], TaskResult]) -> Callable[[TaskContext], TaskResult]:
        _TASKS.add(PeriodicTask(name, interval, run, needs_github or needs_app, needs_app), name)
        return run

    return register


def list_tasks() -> tuple[PeriodicTask, ...]:
    """All duties, by name."""
    return tuple(_TASKS.get(name) for name in _TASKS.names())
