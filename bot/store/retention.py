"""Deletes rows that are no longer needed, in batches."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from bot.store.models import CachedResponse, Delivery, DeliveryState, RateUsage

#: (session, before, limit) → number of deleted rows
Prune = Callable[[Session, datetime, int], int]


def deliveries(session: Session, before: datetime, limit: int) -> int:
    """Deletes processed deliveries received before `before`."""
    read = Delivery.state != DeliveryState.PENDING.value
    old = select(Delivery.id).where(read, Delivery.received_at < before).limit(limit)
    return len(session.execute(delete(Delivery).where(Delivery.id.in_(old)).returning(Delivery.id)).all())


def prune_rate_usage(session: Session, before: datetime, limit: int) -> int:
    """Deletes rate usage from before `before`."""
    old = select(RateUsage.id).where(RateUsage.at < before).limit(limit)
    return len(session.execute(delete(RateUsage).where(RateUsage.id.in_(old)).returning(RateUsage.id)).all())


def prune_responses(session: Session, before: datetime, limit: int) -> int:
    """Deletes responses last used before `before`."""
    old = select(CachedResponse.url).where(CachedResponse.at < before).limit(limit)
    return len(
        session.execute(
            delete(CachedResponse).where(CachedResponse.url.in_(old)).returning(CachedResponse.url)
        ).all()
    )
