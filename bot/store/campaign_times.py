"""Measured times of campaigns, for planning."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from bot.store.models import Campaign, CampaignState
from bot.store.step_cost import StepCost


def runner_seconds(session: Session) -> list[float]:
    """Seconds for which each completed campaign that ran cases occupied a runner, over all its steps."""
    query = select(Campaign.costs).where(Campaign.state == CampaignState.DONE.value).order_by(Campaign.id)
    totals = (
        sum(StepCost.from_json(cost).seconds for cost in costs.values()) for costs in session.scalars(query)
    )
    return [total for total in totals if total > 0]
