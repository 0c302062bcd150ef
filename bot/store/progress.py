"""Progress of a campaign, computed from its rows."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from bot.store import campaigns, outcomes
from bot.store.models import Campaign, CampaignState, Effect, EffectState, Reduction, Repeat, Side
from bot.store.outcomes import CacheKey

_UNSENT = (EffectState.PENDING.value, EffectState.SENDING.value)


@dataclass(frozen=True)
class CampaignProgress:
    """Progress of a campaign.

    done, total  cases or runs of the current step; total is 0 if unknown
    unsent       number of effects to send
    """

    campaign: int
    state: CampaignState
    reason: str
    done: int
    total: int
    note: str
    unsent: int


def of_delivery(session: Session, delivery: str) -> CampaignProgress | None:
    """Progress of the campaign that a delivery created; None while there is none."""
    campaign = session.scalars(select(Campaign).where(Campaign.delivery == delivery)).first()
    if campaign is None:
        return None
    state = CampaignState(campaign.state)
    done, total, note = step(session, campaign)
    unsent = select(func.count()).where(Effect.campaign_id == campaign.id, Effect.state.in_(_UNSENT))
    return CampaignProgress(
        campaign.id, state, campaign.reason, done, total, note, session.scalar(unsent) or 0
    )


def step(session: Session, campaign: Campaign) -> tuple[int, int, str]:
    """(done, total, note) of the campaign's current step, as in `CampaignProgress`."""
    state = CampaignState(campaign.state)
    if state is CampaignState.RUNNING:
        return _outcome_progress(session, campaign, Side.HEAD)
    if state is CampaignState.COMPARING:
        done, total, note = _outcome_progress(session, campaign, Side.BASE)
        if done < total or not total:
            return done, total, note
        return done, total, f"fresh runs of what changed: {_count_repeats(session, campaign)}"
    if state is CampaignState.CONFIRMING:
        runs = _count_repeats(session, campaign)
        return runs, 0, f"{runs} runs"
    if state is CampaignState.REDUCING:
        small = session.scalar(_count_reduced(campaign)) or 0
        return small, 0, f"{small} so far"
    return 0, 0, ""


def _count_repeats(session: Session, campaign: Campaign) -> int:
    return session.scalar(select(func.count()).where(Repeat.campaign_id == campaign.id)) or 0


def _count_reduced(campaign: Campaign) -> Select[int]:
    """Number of cases reduced at the campaign's head since it began."""
    return select(func.count()).where(
        Reduction.toolchain == (campaign.head_toolchain or ""),
        Reduction.recorded_at >= campaign.created_at,
        Reduction.reduced != "",
    )


def _outcome_progress(session: Session, campaign: Campaign, side: Side) -> tuple[int, int, str]:
    digest = campaign.head_toolchain if side is Side.HEAD else campaign.base_toolchain
    if digest is None:
        return 0, 0, ""
    key = CacheKey.of(digest, campaign.config)
    done, total = outcomes.ran(session, campaign.id, key), campaigns.planned(session, campaign.id)
    label = campaigns.toolchain(session, digest).label
    return done, total, f"{done} of {total} cases on {label}"
