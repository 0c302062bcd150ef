"""Deletes rows that are no longer needed, in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from sqlalchemy import delete, exists, inspect, select, tuple_
from sqlalchemy.orm import Session

from bot.store import campaigns
from bot.store.models import (
    CachedResponse,
    Campaign,
    CampaignCase,
    CampaignState,
    Delivery,
    DeliveryState,
    OutcomeRow,
    RateUsage,
)
from fuzzing.outcomes import Verdict

#: The key of `Campaign.plan` that says that the cases that did not run are gone.
_PRUNED = "pruned"

#: (session, before, limit) → number of deleted rows
Prune = Callable[[Session, datetime, int], int]


def deliveries(session: Session, before: datetime, limit: int) -> int:
    """Deletes processed deliveries received before `before`."""
    read = Delivery.state != DeliveryState.PENDING.value
    old = select(Delivery.id).where(read, Delivery.received_at < before).limit(limit)
    return len(session.execute(delete(Delivery).where(Delivery.id.in_(old)).returning(Delivery.id)).all())


def prune_plans(session: Session, before: datetime, limit: int) -> int:
    """Deletes the planned cases that did not run of campaigns that ended before `before`.

    A budget reaches tens of the thousands of cases that a plan ranks, and each push has a plan. The number of
    planned cases stays (`campaigns.planned`).
    """
    ended = [state.value for state in CampaignState if state.ended]
    whole = Campaign.plan[_PRUNED].as_boolean().is_(None)
    query = select(Campaign).where(Campaign.state.in_(ended), Campaign.updated_at < before, whole)
    deleted = 0
    for campaign in session.scalars(query.order_by(Campaign.id).limit(limit)):
        ran = exists().where(
            OutcomeRow.case_id == CampaignCase.case_id, OutcomeRow.toolchain == campaign.head_toolchain
        )
        own = CampaignCase.campaign_id == campaign.id
        ranks = session.scalars(select(CampaignCase.rank).where(own, ~ran).limit(limit - deleted)).all()
        campaigns.record_planned(session, campaign)
        session.execute(delete(CampaignCase).where(own, CampaignCase.rank.in_(ranks)))
        deleted += len(ranks)
        if deleted == limit:
            break
        campaign.plan = campaign.plan | {_PRUNED: True}
    return deleted


def prune_verdicts(session: Session, before: datetime, limit: int) -> int:
    """Deletes verdicts from before `before` that are no failures.

    They are the many, and each ranking reads all of its target's. Bugs and reports refer to failures.
    """
    kept = [verdict.value for verdict in Verdict if verdict.is_failure]
    key = tuple_(*inspect(OutcomeRow).primary_key)
    old = select(*inspect(OutcomeRow).primary_key).where(
        OutcomeRow.recorded_at < before, OutcomeRow.verdict.not_in(kept)
    )
    found = [tuple(row) for row in session.execute(old.limit(limit))]
    session.execute(delete(OutcomeRow).where(key.in_(found)))
    return len(found)


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
