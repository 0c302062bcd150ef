"""What GitHub and people say of a pull request becomes rows, in the transaction that brought it.

Nothing here reaches the network: what has to be asked of GitHub or git is done by `bot.pulls.pull_evaluation`,
which a row of `jobs` sets going.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import structlog

from bot.reports.buttons import RERUN
from bot.reports.report import idempotency_key
from bot.store import Session, audit, jobs, now, pulls
from bot.store.campaigns import after_commit
from bot.store.models import Job, JobState, Pull
from bot.store.pulls import EVALUATE_PULL, OPEN, UpdateResult
from bot.webhooks.intents import PullIntent

log = structlog.get_logger(__name__)

#: A push within this time after another one spares the first one's campaign: in a storm only the last counts.
DEBOUNCE = timedelta(seconds=1)

#: What GitHub and we call the buttons that ask for another test.
RERUN_ACTIONS = (RERUN.identifier, "rerequested")
#: Of a press that waits, why it is not to be heeded any more.
STOP_REASON = "stopped"

#: What somebody wants of a pull request's head, beside what every event brings about.
_REQUEST_FIELDS = ("again", "overrides", "requested_by", "head")

Wake = Callable[[], None]


def handle(
    session: Session, intent: PullIntent, *, wake: Wake | None = None, debounce: timedelta = DEBOUNCE
) -> Pull:
    """Keeps what was told, unless something later is known.

    Closing ends the campaigns; after all else the pull request is looked at.
    """
    at = now()
    return apply_update(session, pulls.row(intent.target, intent), at, wake=wake, debounce=debounce)


def apply_update(
    session: Session,
    reported: Pull,
    at: datetime,
    *,
    wake: Wake | None = None,
    debounce: timedelta = DEBOUNCE,
) -> Pull:
    """What `handle` does, for whoever learned of the pull request in another way."""
    known = store_update(session, reported, at)
    if known.stale:
        log.info("pull_update.ignored", target=reported.target, pull=reported.number)
        return reported
    pull = known.pull
    if pull.state == OPEN and not known.ambiguous:  # whatever is decided of this head: looks may take a while
        end_campaigns(session, pull, explain_superseded(pull), at, except_head=pull.head)
    if pull.state == OPEN or known.ambiguous:  # GitHub is asked which of the two is the later
        schedule_evaluation(session, pull.target, pull.number, at + debounce, at, wake=wake)
    if pull.state != OPEN:
        end_closed(session, pull, at)
    return pull


def store_update(session: Session, reported: Pull, at: datetime) -> UpdateResult:
    """The row, brought up to date unless something later is known.

    A push voids the last head's release.
    """
    known = pulls.update_if_newer(session, reported)
    if known.revoked_approver:
        why = f"a new push: {reported.head[:12]} has not been released"
        audit.record(session, reported.target, "voided", audit_subject(reported.number), why, at)
    return known


def end_closed(session: Session, pull: Pull, at: datetime) -> None:
    """Ends the campaigns of a pull request that is closed or merged.

    Their check runs are finished by `bot.pulls.check_run_updater`.
    """
    end_campaigns(session, pull, f"pull request #{pull.number} was {pull.state}", at)


def end_campaigns(session: Session, pull: Pull, why: str, at: datetime, *, except_head: str = "") -> None:
    """Ends the campaigns of a pull request, but those of the head `except_head`, and says so in the audit."""
    for campaign in pulls.supersede_campaigns(
        session, pull.target, pull.number, why, at, except_head=except_head
    ):
        audit.record(session, pull.target, "ended", f"campaign:{campaign}", why, at)


def stop_testing(
    session: Session, pull: Pull, why: str, requested_at: datetime, at: datetime, *, wake: Wake | None = None
) -> int:
    """Ends the campaigns of a pull request, and what waits to become one; how many there were.

    Its present head is not tested until somebody asks for that: no event that comes later may bring it back,
    nor may a press of a button that came before.

    requested_at   when we heard of the wish to stop. GitHub tells no time of a press: the order in which we heard of
           both is the nearest there is to the order in which people acted
    """
    ended = len(pulls.supersede_campaigns(session, pull.target, pull.number, why, at))
    pending_actions = pulls.pending_actions(session, pull.target, pull.number, RERUN_ACTIONS, requested_at)
    for press in pending_actions:
        press.arguments = press.arguments | {STOP_REASON: why}
    waits = _discard_request(session, pull, at)
    if not ended and not pending_actions and not waits:
        return 0
    pull.stopped_head = pull.head
    if wake is not None:
        after_commit(session, wake)
    return ended or 1


def _discard_request(session: Session, pull: Pull, at: datetime) -> bool:
    """Leaves a look nothing to fulfil; whether one waits, is under way, or was given up with its wish.

    One that is under way has decided for a test already, perhaps: its run_number is over.
    """
    name = idempotency_key(jobs.key_word(EVALUATE_PULL), pull.target, str(pull.number))
    job, plain = jobs.of_key(session, name), {"number": pull.number}
    if job is None or (not jobs.is_unfinished(job) and not _pending_request(session, name)):
        return False
    if jobs.is_unfinished(job):
        jobs.enqueue(session, EVALUATE_PULL, pull.target, name, at, due=at, again=True, arguments=plain)
    else:
        job.arguments = plain | {"run_number": jobs.run_number(job)}
    return True


def explain_superseded(pull: Pull) -> str:
    """Why campaigns of other heads than its present one end."""
    return f"superseded: {pull.head[:12]} is the head of #{pull.number} now"


def schedule_evaluation(
    session: Session,
    target: str,
    number: int,
    due: datetime,
    at: datetime,
    *,
    again: str = "",
    requested_by: str = "",
    overrides: Mapping[str, Any] | None = None,
    wake: Wake | None = None,
) -> Job:
    """Has the pull request looked at when `due` has come.

    again      why the head it has now is to be tested even if it has been, "" if that is no reason
    overrides  fields of the configuration that whoever asks wants otherwise
    """
    name = idempotency_key(jobs.key_word(EVALUATE_PULL), target, str(number))
    request = (
        _build_request(session, target, number, again, overrides or {}, requested_by)
        if again
        else _pending_request(session, name)
    )
    arguments = {"number": number, **request}
    job = jobs.enqueue(
        session,
        EVALUATE_PULL,
        target,
        name,
        at,
        due=due,
        again=True,
        arguments=arguments,
        requested_by=requested_by,
    )
    if wake is not None:
        after_commit(session, wake)
    return job


def _build_request(
    session: Session, target: str, number: int, again: str, overrides: Mapping[str, Any], requested_by: str
) -> dict[str, Any]:
    """What somebody wants of the present head, also one that was stopped."""
    known = pulls.get(session, target, number)
    head = known.head if known is not None else ""
    if known is not None:
        known.stopped_head = ""
    return {"again": again, "overrides": dict(overrides), "requested_by": requested_by, "head": head}


def _pending_request(session: Session, name: str) -> dict[str, Any]:
    """A wish that nobody has fulfilled yet: no event may wipe it out."""
    job = jobs.of_key(session, name)
    if job is None or job.state == JobState.DONE.value:
        return {}
    return {field: job.arguments[field] for field in _REQUEST_FIELDS if field in job.arguments}


def approve(
    session: Session,
    pull: Pull,
    head: str,
    by: str,
    at: datetime,
    *,
    wake: Wake | None = None,
) -> bool:
    """Releases commit `head` of a pull request, and no other; False if it is not its head any more.

    The caller has made sure that `by` has write access.
    """
    if pull.head != head:
        return False
    pull.approved_head, pull.approved_by = head, by
    why = f"{by} released commit {head[:12]}"
    audit.record(session, pull.target, "approved", audit_subject(pull.number), why, at, actor=by)
    schedule_evaluation(session, pull.target, pull.number, at, at, requested_by=by, wake=wake)
    return True


def audit_subject(number: int) -> str:
    """A pull request in the audit."""
    return f"pull:{number}"
