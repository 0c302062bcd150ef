"""Pull requests in the database: what GitHub last told of them, and what is to be done about them.

What is to be done is a row of `jobs`: of the kind LOOK there is one for each pull request, set going again by
whatever happens to it; of the kind PRESS one for each time somebody used a button of a check run. While a job
is pending, `lease_until` is when it is due; while it runs, when its worker is given up. Its `turn` says how
often it was set going: a worker whose turn is over changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import or_, select, update
from sqlalchemy.orm import Session

from bot.store.campaigns import insert_missing
from bot.store.models import Campaign, CampaignState, Effect, Job, JobState, Pull

LOOK, PRESS = "pull", "press"
OPEN = "open"  # Pull.state
CHECK_RUN = "check_run"

_UNFINISHED = tuple(state.value for state in CampaignState if not state.ended)
_AT_WORK = (JobState.PENDING.value, JobState.RUNNING.value)
#: Fields that GitHub tells; approval is ours.
_TOLD = (
    "head",
    "base",
    "base_ref",
    "head_repository",
    "author",
    "association",
    "draft",
    "state",
    "updated_at",
)


@dataclass(frozen=True)
class Remembered:
    """What became of something that was told of a pull request.

    stale   it is older than what is known, and changed nothing
    voided  who had approved the head that this push replaced, "" for nobody
    """

    pull: Pull
    stale: bool
    voided: str


def get(session: Session, target: str, number: int) -> Pull | None:
    """The pull request, if it was ever told of."""
    return session.get(Pull, (target, number))


def remember(session: Session, told: Pull) -> Remembered:
    """Keeps what was told, unless something later is known.

    Another head ends the approval of the last one.
    """
    values = {
        column.key: value
        for column in Pull.__table__.columns
        if (value := getattr(told, column.key)) is not None
    }
    insert_missing(session, Pull, [values])
    row = session.get_one(Pull, (told.target, told.number), with_for_update=True)
    if told.updated_at < row.updated_at:
        return Remembered(row, stale=True, voided="")
    voided = ""
    if row.head != told.head:
        voided, row.approved_head, row.approved_by = row.approved_by, "", ""
    for name in _TOLD:
        if (value := getattr(told, name)) is not None:
            setattr(row, name, value)
    return Remembered(row, stale=False, voided=voided)


def set_going(
    session: Session,
    kind: str,
    key: str,
    target: str,
    arguments: Mapping[str, Any],
    due: datetime,
    at: datetime,
    *,
    asked_by: str = "",
    campaign_id: int | None = None,
) -> Job:
    """The job of this key, pending and due at `due`.

    One that is at work or done is set going again, with a new turn.
    """
    fresh = {
        "key": key,
        "kind": kind,
        "target": target,
        "arguments": {},
        "asked_by": asked_by,
        "state": JobState.PENDING.value,
        "reason": "",
        "result": {},
        "owner": "",
        "attempts": 0,
        "campaign_id": campaign_id,
        "created_at": at,
    }
    insert_missing(session, Job, [fresh])
    job = session.scalars(select(Job).where(Job.key == key).with_for_update()).one()
    job.arguments = {**arguments, "turn": turn(job) + 1}
    job.state, job.owner, job.lease_until, job.attempts = JobState.PENDING.value, "", due, 0
    job.done_at, job.target = None, target
    return job


def turn(job: Job) -> int:
    """How often the job was set going."""
    return int(job.arguments.get("turn", 0))


def any_due(session: Session, at: datetime) -> bool:
    """Whether `claim` would find something; needs no write lock."""
    return session.scalar(select(Job.id).where(_due(at)).limit(1)) is not None


def claim(session: Session, owner: str, at: datetime, until: datetime) -> Job | None:
    """The job that has been due longest, leased to `owner`; None if none is."""
    due = select(Job).where(_due(at)).order_by(Job.lease_until, Job.id).limit(1)
    job = session.scalars(due.with_for_update(skip_locked=True)).one_or_none()
    if job is not None:
        job.state, job.owner, job.lease_until = JobState.RUNNING.value, owner, until
        job.attempts += 1
    return job


def free(session: Session) -> None:
    """Makes what nobody can be working on due; for a process that knows itself to be alone."""
    session.execute(
        update(Job)
        .where(Job.kind.in_((LOOK, PRESS)), Job.state == JobState.RUNNING.value)
        .values(state=JobState.PENDING.value, owner="", lease_until=None)
    )


def in_turn(session: Session, job_id: int, of_turn: int) -> Job | None:
    """The job, locked, if it was not set going again since `of_turn`, nor ended."""
    job = session.get(Job, job_id, with_for_update=True)
    if job is None or turn(job) != of_turn or job.state not in _AT_WORK:
        return None
    return job


def settle(job: Job, state: JobState, reason: str, result: Mapping[str, Any], at: datetime) -> None:
    """The job is done, or given up; `reason` says what came of it."""
    job.state, job.reason, job.result = state.value, reason, dict(result)
    job.owner, job.lease_until, job.done_at = "", None, at


def postpone(job: Job, reason: str, until: datetime) -> None:
    """The job is tried again at `until`."""
    job.state, job.reason, job.owner, job.lease_until = JobState.PENDING.value, reason, "", until


def campaigns_of(session: Session, target: str, number: int, head: str, base: str) -> Sequence[Campaign]:
    """The campaigns of a pull request for two commits, oldest first."""
    query = select(Campaign).where(
        Campaign.target == target, Campaign.pull == number, Campaign.head == head, Campaign.base == base
    )
    return session.scalars(query.order_by(Campaign.id)).all()


def at_work(session: Session) -> Sequence[Campaign]:
    """The campaigns of pull requests that have not ended, oldest first."""
    query = select(Campaign).where(Campaign.pull.is_not(None), Campaign.state.in_(_UNFINISHED))
    return session.scalars(query.order_by(Campaign.id)).all()


def unended(session: Session, campaign_id: int) -> Campaign | None:
    """The campaign, locked against its end, if it has not come yet."""
    query = select(Campaign).where(Campaign.id == campaign_id, Campaign.state.in_(_UNFINISHED))
    return session.scalars(query.with_for_update()).one_or_none()


def before(session: Session, campaign: Campaign) -> int:
    """How many unfinished campaigns, of whatever target, come before this one."""
    query = select(Campaign.id).where(Campaign.id < campaign.id, Campaign.state.in_(_UNFINISHED))
    return len(session.scalars(query).all())


def end(session: Session, target: str, number: int, reason: str, at: datetime, *, but: int = 0) -> list[int]:
    """Ends the unfinished campaigns of a pull request, except one; returns their ids.

    Their outcomes stay: a verdict is true whatever became of the campaign that asked for it.
    """
    query = select(Campaign).where(
        Campaign.target == target,
        Campaign.pull == number,
        Campaign.id != but,
        Campaign.state.in_(_UNFINISHED),
    )
    ended = session.scalars(query.with_for_update()).all()
    for campaign in ended:
        campaign.state, campaign.reason, campaign.updated_at = CampaignState.SUPERSEDED.value, reason, at
        campaign.owner, campaign.lease_until = "", None
    session.flush()
    return [campaign.id for campaign in ended]


def unsaid(session: Session) -> Sequence[tuple[Campaign, Effect]]:
    """Ended campaigns of pull requests whose check run still says that they are at work."""
    query = (
        select(Campaign, Effect)
        .join(Effect, Effect.campaign_id == Campaign.id)
        .where(
            Campaign.pull.is_not(None),
            Campaign.state.not_in(_UNFINISHED),
            Effect.kind == CHECK_RUN,
            Effect.payload["status"].as_string() != "completed",
        )
        .order_by(Campaign.id)
    )
    return [(campaign, effect) for campaign, effect in session.execute(query)]


def _due(at: datetime) -> Any:
    free = or_(Job.lease_until.is_(None), Job.lease_until <= at)
    return Job.kind.in_((LOOK, PRESS)) & Job.state.in_(_AT_WORK) & free
