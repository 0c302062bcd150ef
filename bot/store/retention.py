"""Dropping rows that say nothing any more, some at a time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from bot.store.models import Answer, Delivery, DeliveryState, Spending

#: (session, those before, at most) → how many were dropped
Drop = Callable[[Session, datetime, int], int]


def deliveries(session: Session, before: datetime, limit: int) -> int:
    """Drops deliveries that were read and came before then."""
    read = Delivery.state != DeliveryState.PENDING.value
    old = select(Delivery.id).where(read, Delivery.received_at < before).limit(limit)
    return len(session.execute(delete(Delivery).where(Delivery.id.in_(old)).returning(Delivery.id)).all())


def spending(session: Session, before: datetime, limit: int) -> int:
    """Drops what was spent of GitHub's limits before then."""
    old = select(Spending.id).where(Spending.at < before).limit(limit)
    return len(session.execute(delete(Spending).where(Spending.id.in_(old)).returning(Spending.id)).all())


def answers(session: Session, before: datetime, limit: int) -> int:
    """Drops GitHub's answers that were last used before then."""
    old = select(Answer.url).where(Answer.at < before).limit(limit)
    return len(session.execute(delete(Answer).where(Answer.url.in_(old)).returning(Answer.url)).all())
