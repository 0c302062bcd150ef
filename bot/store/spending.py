"""How much GitHub is asked for, over all processes: what was written when, and who must wait until when.

The figures are GitHub's ("Rate limits for the REST API", "Best practices"): 80 content creations a minute and
500 an hour, a second between writes. They count for each account: an installation, or the owner of a token.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from datetime import datetime, timedelta

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from bot.store.models import Pause, Spending

#: Content creations allowed in a time.
CREATIONS = ((80, timedelta(minutes=1)), (500, timedelta(hours=1)))
#: Searches allowed in a time; GitHub counts them apart.
SEARCHES = ((30, timedelta(minutes=1)),)
_KEPT = timedelta(hours=2)  # rows older than every window above are dropped

Windows = tuple[tuple[int, timedelta], ...]


def reserve(
    session: Session,
    account: str,
    at: datetime,
    *,
    gap: timedelta = timedelta(0),
    counted: bool = False,
    windows: Windows = (),
    patience: timedelta = timedelta(0),
) -> datetime:
    """When `account` may act: not before `at`, `gap` after its last act, and within `windows`.

    The time is taken, for nobody else to take, if it is no further away than `patience`; else nothing is.
    counted  whether the act counts in the windows
    """
    _queue(session, account)
    last = session.scalar(select(func.max(Spending.at)).where(Spending.installation == account))
    when = max(at, last + gap) if last is not None else at
    if counted:
        when = max([when, *(_free(session, account, most, span, when) for most, span in windows)])
    if when - at <= patience:
        session.add(Spending(installation=account, at=when, creates=counted))
        session.flush()
    return when


def _free(session: Session, account: str, most: int, span: timedelta, when: datetime) -> datetime:
    """When fewer than `most` counted acts lie in the `span` before."""
    query = (
        select(Spending.at)
        .where(Spending.installation == account, Spending.creates, Spending.at > when - span)
        .order_by(Spending.at.desc())
        .offset(most - 1)
        .limit(1)
    )
    oldest = session.scalar(query)
    return oldest + span if oldest is not None else when


def _queue(session: Session, account: str) -> None:
    """One at a time for each account. SQLite has one writer anyway."""
    if session.get_bind().dialect.name == "postgresql":
        session.execute(select(func.pg_advisory_xact_lock(zlib.crc32(account.encode()))))


def pause(session: Session, account: str, until: datetime, reason: str) -> None:
    """Nobody calls for `account` before `until`; an earlier pause that ends later stays."""
    _queue(session, account)
    there = session.get(Pause, account)
    if there is None:
        session.add(Pause(installation=account, until=until, reason=reason))
    elif there.until < until:
        there.until, there.reason = until, reason
    session.flush()


def pauses(session: Session, at: datetime) -> Mapping[str, Pause]:
    """Account → its pause, where that is not over."""
    return {one.installation: one for one in session.scalars(select(Pause).where(Pause.until > at))}


def paused(session: Session, account: str, at: datetime) -> Pause | None:
    """The pause of one account, if it is not over."""
    there = session.get(Pause, account)
    return there if there is not None and there.until > at else None


def tidy(session: Session, at: datetime) -> None:
    """Drops what counts no more."""
    session.execute(delete(Spending).where(Spending.at < at - _KEPT))
    session.execute(delete(Pause).where(Pause.until < at))
