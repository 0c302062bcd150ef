"""Rows by state, for /metrics; queried at each scrape."""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from bot.store.models import Campaign, Effect, OutcomeRow


def campaigns_by_state(session: Session) -> dict[str, int]:
    """Campaigns in each CampaignState that occurs."""
    return _group(session, Campaign.state)


def outcomes_by_verdict(session: Session) -> dict[str, int]:
    """Outcomes with each verdict that occurs."""
    return _group(session, OutcomeRow.verdict)


def effects_by_state(session: Session) -> dict[str, int]:
    """Effects in each EffectState that occurs."""
    return _group(session, Effect.state)


def _group(session: Session, column: InstrumentedAttribute[str]) -> dict[str, int]:
    return dict(session.execute(select(column, func.count()).group_by(column)).all())
