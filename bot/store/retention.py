"""Deletes rows that are no longer needed, in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from bot.store.models import CachedResponse, Campaign, CampaignState, Delivery, DeliveryState, RateUsage

#: (session, before, limit) → number of deleted rows
Prune = Callable[[Session, datetime, int], int]


def deliveries(session: Session, before: datetime, limit: int) -> int:
    """Deletes processed deliveries received before `before`."""
    read = Delivery.state != DeliveryState.PENDING.value
    old = select(Delivery.id).where(read, Delivery.received_at < before).limit(limit)
    return len(session.execute(delete(Delivery).where(Delivery.id.in_(old)).returning(Delivery.id)).all())


def ended_campaigns(session: Session, ids: Iterable[int], before: datetime) -> list[int]:
    """Those of the campaigns that ended before `before`."""
    ended = [state.value for state in CampaignState if state.ended]
    query = select(Campaign.id).where(Campaign.state.in_(ended), Campaign.updated_at < before)
    return sorted(set(ids).intersection(session.scalars(query)))


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
