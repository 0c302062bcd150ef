"""Jobs in the database: work about a bug, a pull request or a campaign.

A job has a key. Requesting the key again while its job waits or runs changes nothing; a finished job restarts
only with `again`. `lease_until` is when a pending job is due, and when the lease of a running job expires.
`run_number` counts the starts: a worker with an older number may not change the row.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import case, func, or_, select, update
from sqlalchemy.orm import Session, aliased

from bot.store.campaigns import insert_missing
from bot.store.models import Job, JobState

#: Maximal length of a key.
MAX_KEY = 64
#: Prefix of the reason of a job that failed by a bug of ours; a retry would fail in the same way.
INTERNAL_ERROR = "a bug of Assay"

#: Kind of job → its word in idempotency keys, where the kind was renamed: existing keys must not change.
_KEY_WORDS = {
    "check_run_action": "press",
    "first_bad_release": "since",
    "issue_filing": "filing",
    "localize": "localise",
    "mirror_deletion": "mirrors",
    "pull_evaluation": "pull",
}

_UNFINISHED = (JobState.PENDING.value, JobState.RUNNING.value)


def enqueue(
    session: Session,
    kind: str,
    target: str,
    key: str,
    at: datetime,
    *,
    due: datetime | None = None,
    again: bool = False,
    bug_id: int | None = None,
    campaign_id: int | None = None,
    arguments: Mapping[str, Any] | None = None,
    requested_by: str = "",
) -> Job:
    """The job of this key, created if there is none.

    due    when it may begin, None for at once
    again  whether an existing job restarts, with these arguments and a new run_number
    """
    fresh = {
        "key": key,
        "kind": kind,
        "target": target,
        "bug_id": bug_id,
        "campaign_id": campaign_id,
        "arguments": {**(arguments or {}), "run_number": 1},
        "requested_by": requested_by,
        "state": JobState.PENDING.value,
        "reason": "",
        "result": {},
        "owner": "",
        "lease_until": due,
        "attempts": 0,
        "created_at": at,
    }
    new = insert_missing(session, Job, [fresh])
    job = session.scalars(select(Job).where(Job.key == key).with_for_update()).one()
    if again and not new:
        before = (
            "" if job.state == JobState.DONE.value else job.requested_by
        )  # requested_by is cleared: nobody waits for a finished job
        job.arguments = {**(arguments or {}), "run_number": run_number(job) + 1}
        job.state, job.owner, job.lease_until, job.attempts = JobState.PENDING.value, "", due, 0
        job.done_at, job.target, job.requested_by = None, target, requested_by or before
    return job


def key_word(kind: str) -> str:
    """The word for a job kind in idempotency keys."""
    return _KEY_WORDS.get(kind, kind)


def is_unfinished(job: Job) -> bool:
    """Whether the job waits or runs."""
    return job.state in _UNFINISHED


def run_number(job: Job) -> int:
    """How often the job was started."""
    return int(job.arguments.get("run_number", 1))


def any_due(session: Session, kinds: Collection[str], at: datetime) -> bool:
    """Whether `claim` would return a job; takes no write lock."""
    return session.scalar(select(Job.id).where(_due(kinds, at)).limit(1)) is not None


def oldest_due(session: Session, kinds: Collection[str], at: datetime) -> datetime | None:
    """When the longest waiting due job was requested."""
    query = select(Job.created_at).where(_due(kinds, at)).order_by(Job.created_at).limit(1)
    return session.scalar(query)


def claim(session: Session, kinds: Collection[str], owner: str, at: datetime, until: datetime) -> Job | None:
    """Leases the next job of these kinds to `owner`; None if none is due.

    Round-robin by repository: the one whose last job ended longest ago, with its oldest job.
    """
    other = aliased(Job)
    is_running = (other.state == JobState.RUNNING.value) & (other.lease_until > at)
    served = (
        select(func.max(case((is_running, at), else_=other.done_at)))
        .where(other.target == Job.target, other.kind.in_(tuple(kinds)))
        .scalar_subquery()
    )
    order = (served.asc().nulls_first(), Job.created_at, Job.id)
    due = select(Job).where(_due(kinds, at)).order_by(*order).limit(1)
    job = session.scalars(due.with_for_update(skip_locked=True)).one_or_none()
    if job is not None:
        job.state, job.owner, job.lease_until = JobState.RUNNING.value, owner, until
        job.attempts += 1
    return job


def lock_held(session: Session, job_id: int, owner: str, expected_run: int) -> Job | None:
    """The locked job, if `owner` still holds it and it was not restarted since `expected_run`."""
    job = session.get(Job, job_id, with_for_update=True, populate_existing=True)
    if (
        job is None
        or job.owner != owner
        or run_number(job) != expected_run
        or job.state != JobState.RUNNING.value
    ):
        return None
    return job


def complete(job: Job, state: JobState, reason: str, result: Mapping[str, Any], at: datetime) -> None:
    """Ends the job; `reason` is its result or why it was given up."""
    job.state, job.reason, job.result = state.value, reason, dict(result)
    job.owner, job.lease_until, job.done_at = "", None, at


def postpone(job: Job, reason: str, until: datetime) -> None:
    """Schedules a retry at `until`."""
    job.state, job.reason, job.owner, job.lease_until = JobState.PENDING.value, reason, "", until


def release_lease(job: Job) -> None:
    """Releases the job as if it had not started."""
    job.state, job.owner, job.lease_until = JobState.PENDING.value, "", None
    job.attempts -= 1


def release_other_leases(session: Session, kinds: Collection[str], owner: str) -> None:
    """Releases jobs of these kinds leased to other processes, which are dead."""
    session.execute(
        update(Job)
        .where(Job.kind.in_(tuple(kinds)), Job.state == JobState.RUNNING.value, Job.owner != owner)
        .values(state=JobState.PENDING.value, owner="", lease_until=None)
    )


def of_key(session: Session, key: str) -> Job | None:
    """The job of this key, or None."""
    return session.scalars(select(Job).where(Job.key == key)).one_or_none()


def last_of(session: Session, kind: str, bug_id: int, state: JobState) -> Job | None:
    """The last job of a kind about a bug that ended in this state."""
    query = select(Job).where(Job.kind == kind, Job.bug_id == bug_id, Job.state == state.value)
    return session.scalars(query.order_by(Job.done_at.desc(), Job.id.desc()).limit(1)).first()


def _due(kinds: Collection[str], at: datetime) -> Any:
    free = or_(Job.lease_until.is_(None), Job.lease_until <= at)
    return Job.kind.in_(tuple(kinds)) & Job.state.in_(_UNFINISHED) & free
