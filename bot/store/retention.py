"""Dropping rows that say nothing any more, some at a time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from bot.store.models import CachedResponse, Delivery, DeliveryState, RateUsage

#: (session, those before, at most) → how many were dropped
Prune = Callable[[Session, datetime, int], int]


def deliveries(session: Session, before: datetime, limit: int) -> int:
    """Drops deliveries that were read and came before then."""
    read = Delivery.state != DeliveryState.PENDING.value
    old = select(Delivery.id).where(read, Delivery.received_at < before).limit(limit)
    return len(session.execute(delete(Delivery).where(Delivery.id.in_(old)).returning(Delivery.id)).all())


def prune_rate_usage(session: Session, before: datetime, limit: int) -> int:
    """Drops what was spent of GitHub's limits before then."""
    old = select(RateUsage.id).where(RateUsage.at < before).limit(limit)
    return len(session.execute(delete(RateUsage).where(RateUsage.id.in_(old)).returning(RateUsage.id)).all())


def prune_responses(session: Session, before: datetime, limit: int) -> int:
    """Drops GitHub's answers that were last used before then."""
    old = select(CachedResponse.url).where(CachedResponse.at < before).limit(limit)
    return len(
        session.execute(
            delete(CachedResponse).where(CachedResponse.url.in_(old)).returning(CachedResponse.url)
        ).all()
    )
