"""Rate usage over all processes: times of writes, and pauses of accounts.

The limits are GitHub's ("Rate limits for the REST API", "Best practices"): 80 content creations a minute and
500 an hour, a second between writes, for each account: an installation, or the owner of a token.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from datetime import datetime, timedelta

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from bot.store.models import RateLimitPause, RateUsage

#: Content creations allowed in each time window.
CREATIONS = ((80, timedelta(minutes=1)), (500, timedelta(hours=1)))
#: Searches allowed in a time window; GitHub limits them separately.
SEARCHES = ((30, timedelta(minutes=1)),)
_KEPT = timedelta(hours=2)  # longer than every window above

Windows = tuple[tuple[int, timedelta], ...]


def reserve(
    session: Session,
    account: str,
    at: datetime,
    *,
    gap: timedelta = timedelta(0),
    creates_content: bool = False,
    windows: Windows = (),
    max_wait: timedelta = timedelta(0),
) -> datetime:
    """When `account` may act: not before `at`, `gap` after its last act, and within `windows`.

    The time is reserved if it is at most `max_wait` away.

    creates_content  whether the act counts in the windows
    """
    _queue(session, account)
    last = session.scalar(select(func.max(RateUsage.at)).where(RateUsage.account == account))
    when = max(at, last + gap) if last is not None else at
    if creates_content:
        when = max([when, *(_free(session, account, most, span, when) for most, span in windows)])
    if when - at <= max_wait:
        session.add(RateUsage(account=account, at=when, creates_content=creates_content))
        session.flush()
    return when


def _free(session: Session, account: str, most: int, span: timedelta, when: datetime) -> datetime:
    """The first time with fewer than `most` counted acts in the `span` before."""
    query = (
        select(RateUsage.at)
        .where(RateUsage.account == account, RateUsage.creates_content, RateUsage.at > when - span)
        .order_by(RateUsage.at.desc())
        .offset(most - 1)
        .limit(1)
    )
    oldest = session.scalar(query)
    return oldest + span if oldest is not None else when


def _queue(session: Session, account: str) -> None:
    """Serializes writers of one account on PostgreSQL; SQLite has one writer anyway."""
    if session.get_bind().dialect.name == "postgresql":
        session.execute(select(func.pg_advisory_xact_lock(zlib.crc32(account.encode()))))


def pause(session: Session, account: str, until: datetime, reason: str) -> None:
    """Pauses `account` until `until`; a pause that ends later stays."""
    _queue(session, account)
    there = session.get(RateLimitPause, account)
    if there is None:
        session.add(RateLimitPause(account=account, until=until, reason=reason))
    elif there.until < until:
        there.until, there.reason = until, reason
    session.flush()


def pauses(session: Session, at: datetime) -> Mapping[str, RateLimitPause]:
    """Account → its active pause."""
    return {
        one.account: one for one in session.scalars(select(RateLimitPause).where(RateLimitPause.until > at))
    }


def paused(session: Session, account: str, at: datetime) -> RateLimitPause | None:
    """The active pause of one account, if there is one."""
    there = session.get(RateLimitPause, account)
    return there if there is not None and there.until > at else None


def prune(session: Session, at: datetime) -> None:
    """Deletes rows outside of every window."""
    session.execute(delete(RateUsage).where(RateUsage.at < at - _KEPT))
    session.execute(delete(RateLimitPause).where(RateLimitPause.until < at))
