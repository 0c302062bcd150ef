"""Status of a target: counts of work and effects."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from bot.store import mutes
from bot.store.models import Campaign, CampaignState, Effect, EffectState, Job, JobState, Mute, Target

_UNFINISHED = tuple(state.value for state in CampaignState if not state.ended)


@dataclass(frozen=True)
class TargetStatus:
    """Counts of what is running and waiting for a target.

    working, ahead  campaigns that run, and that wait before it
    jobs            unfinished jobs
    unsent, held    effects to send, and effects that wait for a maintainer
    """

    last_event: datetime | None
    working: int
    ahead: int
    jobs: int
    unsent: int
    held: int
    mutes: tuple[Mute, ...]


def of_target(session: Session, target: str, at: datetime) -> TargetStatus:
    """The status of a target."""
    unfinished = (Campaign.target == target, Campaign.state.in_(_UNFINISHED))
    row = session.get(Target, target)
    open_jobs = Job.state.in_((JobState.PENDING.value, JobState.RUNNING.value))
    return TargetStatus(
        last_event=row.last_event_at if row else None,
        working=_count(session, Campaign.id, *unfinished, Campaign.owner != ""),
        ahead=_count(session, Campaign.id, *unfinished, Campaign.owner == ""),
        jobs=_count(session, Job.id, Job.target == target, open_jobs),
        unsent=_effects(session, target, EffectState.PENDING, EffectState.SENDING),
        held=_effects(session, target, EffectState.HELD),
        mutes=tuple(mutes.in_force(session, target, at)),
    )


def newest(session: Session, target: str, pull: int) -> Campaign | None:
    """The newest campaign of a pull request."""
    query = select(Campaign).where(Campaign.target == target, Campaign.pull == pull)
    return session.scalars(query.order_by(Campaign.id.desc()).limit(1)).first()


def _effects(session: Session, target: str, *states: EffectState) -> int:
    wanted = Effect.state.in_(tuple(state.value for state in states))
    return _count(session, Effect.key, Effect.target == target, wanted)


def _count(session: Session, column: object, *where: object) -> int:
    return session.scalar(select(func.count(column)).where(*where)) or 0  # type: ignore[arg-type]
