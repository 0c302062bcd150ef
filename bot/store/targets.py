"""Targets and installations in the database.

GitHub's id identifies a repository; its name may change. Other tables refer to a name by its key
(`bot.store.models.target_names`), and `bot.store.target_rename` changes the name.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import chain, count

from sqlalchemy import bindparam, delete, func, or_, select, update
from sqlalchemy.orm import Session

from bot.store import suppression
from bot.store.campaigns import insert_missing
from bot.store.models import (
    Bug,
    Campaign,
    CampaignState,
    Effect,
    EffectState,
    Installation,
    Job,
    JobState,
    Pull,
    Target,
    TargetState,
    name_of,
)

#: `reconciled_at` of a target to be reconciled soon.
LONG_AGO = datetime.fromisoformat("1970-01-01T00:00:00+00:00")

_UNFINISHED = tuple(state.value for state in CampaignState if not state.ended)
_UNSENT = (EffectState.PENDING.value, EffectState.SENDING.value, EffectState.HELD.value)
_UNFINISHED_JOBS = (JobState.PENDING.value, JobState.RUNNING.value)

_NAME = name_of(Target.name)

# Built once, since every delivery needs it.
_LOCK = (
    select(Target)
    .where(Target.name == bindparam("called"))
    .with_for_update()
    .execution_options(populate_existing=True)
)


def find(session: Session, name: str) -> Target | None:
    """The target of this name."""
    return session.get(Target, name)


def find_any_case(session: Session, name: str) -> Target | None:
    """The target of this name, ignoring case as GitHub does."""
    query = select(Target).where(func.lower(_NAME) == name.lower())
    return session.scalars(query.limit(1)).one_or_none()


def lock(session: Session, name: str) -> Target | None:
    """The target of this name, read again and locked until the transaction ends."""
    return session.scalars(_LOCK, {"called": name}).one_or_none()


def of_github_id(session: Session, github_id: int) -> Target | None:
    """The target with this GitHub id, locked."""
    query = select(Target).where(Target.github_id == github_id).with_for_update()
    return session.scalars(query.execution_options(populate_existing=True)).first()


def ensure(session: Session, name: str) -> tuple[Target, bool]:
    """The target of this name, locked, and whether it is new."""
    target = lock(session, name)
    if target is not None:
        return target, False
    made = insert_missing(session, Target, [{"name": name, "stable_name": _unique_name(session, name)}])
    target = lock(session, name)
    assert target is not None
    return target, made == 1


def _unique_name(session: Session, name: str) -> str:
    """The name itself, or a variant if a renamed repository had it first."""
    mine = or_(Target.stable_name == name, Target.stable_name.startswith(f"{name}#", autoescape=True))
    taken = set(session.scalars(select(Target.stable_name).where(mine)))
    names = (f"{name}#{number}" for number in count(2))
    return next(free for free in chain([name], names) if free not in taken)


def event_count(session: Session) -> dict[str, int]:
    """Number of events of each target, by its stable name."""
    return {
        row.stable_name: row.event_count
        for row in session.execute(select(Target.stable_name, Target.event_count))
    }


def stable_name(session: Session, name: str) -> str:
    """The target's name in idempotency keys; renames do not change it."""
    query = select(Target.stable_name).where(Target.name == name)
    return session.scalar(query) or name


def installation(session: Session, installation_id: int) -> Installation | None:
    """The installation of this id."""
    return session.get(Installation, installation_id)


def ensure_installation(
    session: Session, installation_id: int, account: str, at: datetime
) -> tuple[Installation, bool]:
    """The installation of this id, locked, and whether it is new; permissions are unknown at first."""
    values = {"id": installation_id, "account": account, "changed_at": at}
    made = insert_missing(session, Installation, [values])
    row = lock_installation(session, installation_id)
    assert row is not None
    return row, made == 1


def lock_installation(session: Session, installation_id: int) -> Installation | None:
    """The installation of this id, read again and locked."""
    query = select(Installation).where(Installation.id == installation_id).with_for_update()
    return session.scalars(query.execution_options(populate_existing=True)).one_or_none()


def installations(session: Session) -> Sequence[Installation]:
    """All known installations."""
    return session.scalars(select(Installation).order_by(Installation.id)).all()


def drop_installations(session: Session, before: datetime) -> list[int]:
    """Deletes installations removed before then that have no targets; returns their ids."""
    used = select(Target.installation_id).where(Target.installation_id.is_not(None))
    gone = Installation.state == TargetState.REMOVED.value
    query = delete(Installation).where(gone, Installation.changed_at < before, Installation.id.not_in(used))
    return list(session.scalars(query.returning(Installation.id)))


def of_installation(session: Session, installation_id: int) -> Sequence[Target]:
    """The targets of an installation, locked."""
    query = select(Target).where(Target.installation_id == installation_id)
    return session.scalars(query.order_by(_NAME).with_for_update()).all()


def of_owner(session: Session, owner: str) -> Sequence[Target]:
    """The targets of an account, locked."""
    query = select(Target).where(func.lower(_NAME).startswith(f"{owner.lower()}/", autoescape=True))
    return session.scalars(query.order_by(_NAME).with_for_update()).all()


def unwatched_reason(session: Session, name: str) -> str:
    """Why the target is neither tested nor reported; "" if it is watched or unknown."""
    target = session.get(Target, name)
    if target is None or target.state == TargetState.WATCHED.value:
        return ""
    return f"{name} is {target.state}: {target.reason}"


def due_for_reconciliation(session: Session, before: datetime, limit: int, *, has_webhook: bool) -> list[str]:
    """Targets last reconciled before this time, longest ago first.

    has_webhook  those whose installation sends webhooks, else the others, which are polled
    """
    waited = or_(Target.reconciled_at.is_(None), Target.reconciled_at < before)
    through = Target.installation_id.is_not(None) if has_webhook else Target.installation_id.is_(None)
    active = Target.state.in_((TargetState.WATCHED.value, TargetState.ARCHIVED.value))
    query = select(Target.name).where(waited, through, active)
    return list(session.scalars(query.order_by(Target.reconciled_at.nulls_first(), _NAME).limit(limit)))


def scheduled(session: Session) -> list[str]:
    """Watched targets whose configuration has schedules."""
    query = select(Target).where(Target.state == TargetState.WATCHED.value).order_by(_NAME)
    return [target.name for target in session.scalars(query) if target.schedules]


def removed_before(session: Session, at: datetime) -> list[str]:
    """Targets removed before this time."""
    lost = (TargetState.REMOVED.value, TargetState.GONE.value)
    query = select(Target.name).where(Target.state.in_(lost), Target.removed_at < at)
    return list(session.scalars(query.order_by(_NAME)))


def unwatched_with_effects(session: Session) -> list[Target]:
    """Unwatched targets with unsent effects."""
    waiting = select(Effect.target).where(Effect.state.in_(_UNSENT))
    query = select(Target).where(Target.state != TargetState.WATCHED.value, Target.name.in_(waiting))
    return list(session.scalars(query.order_by(_NAME)))


def is_tested(session: Session, target: str, ref: str, head: str) -> bool:
    """Whether a push of this commit to this ref has a campaign."""
    same = (Campaign.target == target, Campaign.ref == ref, Campaign.head == head)
    query = select(Campaign.id).where(*same, Campaign.trigger == "push").limit(1)
    return session.scalar(query) is not None


def last_tested(session: Session, target: str, trigger: str) -> Campaign | None:
    """The newest completed campaign of this trigger."""
    query = select(Campaign).where(
        Campaign.target == target, Campaign.trigger == trigger, Campaign.state == CampaignState.DONE.value
    )
    return session.scalars(query.order_by(Campaign.id.desc()).limit(1)).one_or_none()


def pull(session: Session, target: str, number: int) -> Pull | None:
    """The pull request, if it is known."""
    return session.get(Pull, (target, number))


def open_pulls(session: Session, target: str) -> dict[int, Pull]:
    """The open pull requests as far as known, by number."""
    query = select(Pull).where(Pull.target == target, Pull.state == "open")
    return {row.number: row for row in session.scalars(query)}


def reported_bugs(session: Session, target: str, limit: int = 100) -> Sequence[Bug]:
    """Bugs with an issue, last seen first."""
    query = select(Bug).where(Bug.target == target, Bug.issue.is_not(None))
    return session.scalars(query.order_by(Bug.last_seen.desc(), Bug.id).limit(limit)).all()


def stop_work(session: Session, target: str, reason: str, at: datetime) -> dict[str, int]:
    """Ends all work of a target; returns the numbers of campaigns, effects and jobs.

    An effect that is being sent may still arrive, and is then recorded as sent.
    """
    ended = session.execute(
        update(Campaign)
        .where(Campaign.target == target, Campaign.state.in_(_UNFINISHED))
        .values(
            state=CampaignState.SUPERSEDED.value, reason=reason, owner="", lease_until=None, updated_at=at
        )
        .returning(Campaign.id)
    )
    left = session.execute(
        update(Job)
        .where(Job.target == target, Job.state.in_(_UNFINISHED_JOBS))
        .values(state=JobState.FAILED.value, reason=reason, owner="", lease_until=None, done_at=at)
        .returning(Job.id)
    )
    given_up = suppression.fail_all(session, target, reason)
    return {"campaigns": len(ended.all()), "effects": given_up, "jobs": len(left.all())}
