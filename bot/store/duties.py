"""Duties: what is done now and then by one process, however many run.

A duty is due when it was last done long enough ago and nobody holds its lease. Whoever takes it works
outside any transaction and writes down at the end when that was, and what to know the next time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import case, or_, select, update
from sqlalchemy.orm import Session

from bot.store.campaigns import insert_missing
from bot.store.models import Duty


@dataclass(frozen=True)
class Taken:
    """A duty that is ours for now: when it was last done, and what was to be remembered."""

    name: str
    last: datetime | None
    memory: dict[str, Any]


def take(
    session: Session, name: str, owner: str, at: datetime, every: timedelta, lease: timedelta
) -> Taken | None:
    """The duty, leased to `owner`, if it is due and nobody is at it; else None."""
    insert_missing(session, Duty, [{"name": name}])
    free = or_(Duty.lease_until.is_(None), Duty.lease_until <= at)
    waited = or_(Duty.done_at.is_(None), Duty.done_at <= at - every)
    query = select(Duty).where(Duty.name == name, free, waited).with_for_update(skip_locked=True)
    duty = session.scalars(query).one_or_none()
    if duty is None:
        return None
    duty.owner, duty.lease_until, duty.hurried = owner, at + lease, False
    return Taken(name, duty.done_at, dict(duty.memory))


def is_due(session: Session, name: str, at: datetime, every: timedelta) -> bool:
    """Whether `take` would give it; needs no write lock."""
    duty = session.get(Duty, name)
    if duty is None:
        return True
    leased = duty.lease_until is not None and duty.lease_until > at
    return not leased and (duty.done_at is None or duty.done_at <= at - every)


def renew(session: Session, name: str, owner: str, until: datetime) -> bool:
    """Pushes the end of the lease out; False if it went to another process."""
    query = update(Duty).where(Duty.name == name, Duty.owner == owner).values(lease_until=until)
    return session.scalar(query.returning(Duty.name)) is not None


def done(
    session: Session, name: str, owner: str, at: datetime, note: str, memory: dict[str, Any] | None = None
) -> bool:
    """The duty was done, or failed for now, which `note` says; False if the lease was lost meanwhile.

    Where it was hurried since it was taken, it stays due.
    """
    when = case((Duty.hurried, None), else_=at)
    values: dict[str, Any] = {"done_at": when, "owner": "", "lease_until": None, "note": note}
    if memory is not None:
        values["memory"] = memory
    query = update(Duty).where(Duty.name == name, Duty.owner == owner).values(**values)
    return session.scalar(query.returning(Duty.name)) is not None


def release(session: Session, name: str, owner: str) -> None:
    """Gives the lease back, nothing else changed: the process is shutting down."""
    session.execute(
        update(Duty).where(Duty.name == name, Duty.owner == owner).values(owner="", lease_until=None)
    )


def free_others(session: Session, owner: str) -> None:
    """Frees every lease held by anybody else; for a process that knows itself to be alone."""
    session.execute(
        update(Duty).where(Duty.owner != "", Duty.owner != owner).values(owner="", lease_until=None)
    )


def hurry(session: Session, name: str) -> None:
    """Makes the duty due at once; one that somebody is at is done once more after that."""
    session.execute(update(Duty).where(Duty.name == name).values(done_at=None, hurried=True))


def all_of_them(session: Session) -> Sequence[Duty]:
    """Every duty that was ever due, by name; for people."""
    return session.scalars(select(Duty).order_by(Duty.name)).all()
