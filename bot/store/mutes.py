"""Mutes: operators, signatures or titles that maintainers do not want reported."""

from __future__ import annotations

from datetime import datetime
from fnmatch import fnmatchcase

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from bot.store.models import Mute


def add(
    session: Session, target: str, operator: str, until: datetime, by: str, reason: str, at: datetime
) -> None:
    """Mutes what matches the glob `operator` until `until`; an existing mute gets the new end."""
    there = session.scalars(select(Mute).where(Mute.target == target, Mute.operator == operator)).first()
    if there is None:
        there = Mute(target=target, operator=operator, created_at=at)
        session.add(there)
    there.until, there.by, there.reason = until, by, reason
    session.flush()


def remove(session: Session, target: str, operator: str) -> bool:
    """Removes a mute; False if there was none."""
    found = session.scalars(
        delete(Mute).where(Mute.target == target, Mute.operator == operator).returning(Mute.id)
    ).all()
    return bool(found)


def in_force(session: Session, target: str, at: datetime) -> list[Mute]:
    """The target's active mutes, by operator."""
    query = select(Mute).where(Mute.target == target, Mute.until > at).order_by(Mute.operator)
    return list(session.scalars(query))


def find_covering(session: Session, target: str, operator: str, at: datetime) -> Mute | None:
    """The active mute that matches an operator, if there is one."""
    found = (one for one in in_force(session, target, at) if fnmatchcase(operator, one.operator))
    return next(found, None)
