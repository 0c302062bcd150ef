"""Periodic tasks: each is run by one process at a time.

A task is due when its interval has passed and nobody holds its lease. Its process works outside any
transaction, then records the time and the state for the next run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import case, or_, select, update
from sqlalchemy.orm import Session

from bot.store.campaigns import insert_missing
from bot.store.models import PeriodicTask


@dataclass(frozen=True)
class ClaimedTask:
    """A periodic task leased to this process: time of the last run, and saved state."""

    name: str
    last: datetime | None
    saved_state: dict[str, Any]


def claim(
    session: Session, name: str, owner: str, at: datetime, every: timedelta, lease: timedelta
) -> ClaimedTask | None:
    """Leases the task to `owner` if it is due and not leased; else None."""
    insert_missing(session, PeriodicTask, [{"name": name}])
    free = or_(PeriodicTask.lease_until.is_(None), PeriodicTask.lease_until <= at)
    waited = or_(PeriodicTask.done_at.is_(None), PeriodicTask.done_at <= at - every)
    query = (
        select(PeriodicTask).where(PeriodicTask.name == name, free, waited).with_for_update(skip_locked=True)
    )
    task = session.scalars(query).one_or_none()
    if task is None:
        return None
    task.owner, task.lease_until, task.rerun_requested = owner, at + lease, False
    return ClaimedTask(name, task.done_at, dict(task.saved_state))


def is_due(session: Session, name: str, at: datetime, every: timedelta) -> bool:
    """Whether `claim` would return the task; takes no write lock."""
    task = session.get(PeriodicTask, name)
    if task is None:
        return True
    leased = task.lease_until is not None and task.lease_until > at
    return not leased and (task.done_at is None or task.done_at <= at - every)


def renew(session: Session, name: str, owner: str, until: datetime) -> bool:
    """Extends the lease; False if another process has it."""
    query = (
        update(PeriodicTask)
        .where(PeriodicTask.name == name, PeriodicTask.owner == owner)
        .values(lease_until=until)
    )
    return session.scalar(query.returning(PeriodicTask.name)) is not None


def done(
    session: Session,
    name: str,
    owner: str,
    at: datetime,
    note: str,
    saved_state: dict[str, Any] | None = None,
) -> bool:
    """Records a run, or its failure in `note`; False if the lease was lost.

    A task with rerun_requested stays due.
    """
    when = case((PeriodicTask.rerun_requested, None), else_=at)
    values: dict[str, Any] = {"done_at": when, "owner": "", "lease_until": None, "note": note}
    if saved_state is not None:
        values["saved_state"] = saved_state
    query = (
        update(PeriodicTask).where(PeriodicTask.name == name, PeriodicTask.owner == owner).values(**values)
    )
    return session.scalar(query.returning(PeriodicTask.name)) is not None


def release_lease(session: Session, name: str, owner: str) -> None:
    """Releases the lease without other changes: the process is shutting down."""
    session.execute(
        update(PeriodicTask)
        .where(PeriodicTask.name == name, PeriodicTask.owner == owner)
        .values(owner="", lease_until=None)
    )


def release_other_leases(session: Session, owner: str) -> None:
    """Releases every lease of other processes; for a process that runs alone."""
    session.execute(
        update(PeriodicTask)
        .where(PeriodicTask.owner != "", PeriodicTask.owner != owner)
        .values(owner="", lease_until=None)
    )


def run_soon(session: Session, name: str) -> None:
    """Makes the task due at once; a running task runs once more afterwards."""
    session.execute(
        update(PeriodicTask).where(PeriodicTask.name == name).values(done_at=None, rerun_requested=True)
    )


def list_all(session: Session) -> Sequence[PeriodicTask]:
    """All recorded tasks, by name."""
    return session.scalars(select(PeriodicTask).order_by(PeriodicTask.name)).all()
