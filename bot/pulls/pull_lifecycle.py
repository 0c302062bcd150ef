"""Stores events and requests about pull requests as rows, in the transaction of the delivery.

Uses no network: a row of `jobs` starts `bot.pulls.pull_evaluation`, which reads GitHub and git.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import structlog

from bot.reports.buttons import RERUN
from bot.reports.report import idempotency_key
from bot.store import Session, audit, jobs, now, proposals, pulls
from bot.store.campaigns import after_commit
from bot.store.models import Job, JobState, Pull
from bot.store.pulls import EVALUATE_PULL, OPEN, UpdateResult
from bot.webhooks.intents import PullIntent

log = structlog.get_logger(__name__)

#: Of several pushes within this time, only the last gets a campaign.
DEBOUNCE = timedelta(seconds=1)

#: The identifiers of the buttons that request another test.
RERUN_ACTIONS = (RERUN.identifier, "rerequested")
#: Argument of a pending press: why it is cancelled.
STOP_REASON = "stopped"

#: Arguments of a job that hold a person's request for the head.
_REQUEST_FIELDS = ("again", "overrides", "requested_by", "head")

Wake = Callable[[], None]


def handle(
    session: Session, intent: PullIntent, *, wake: Wake | None = None, debounce: timedelta = DEBOUNCE
) -> Pull:
    """Stores the state of a pull request, unless a later one is known.

    Closing ends the campaigns; any other change schedules an evaluation.
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
    """Does the same as `handle` for a state that no webhook reported."""
    known = store_update(session, reported, at)
    if known.stale:
        log.info("pull_update.ignored", target=reported.target, pull=reported.number)
        return reported
    pull = known.pull
    if pull.state == OPEN and not known.ambiguous:  # at once: the evaluation may take a while
        end_campaigns(session, pull, explain_superseded(pull), at, except_head=pull.head)
    if pull.state == OPEN or known.ambiguous:  # if ambiguous, the evaluation reads which state is later
        schedule_evaluation(session, pull.target, pull.number, at + debounce, at, wake=wake)
    proposals.follow(session, pull.target, pull.number, pull.state, at)
    if pull.state != OPEN:
        end_closed(session, pull, at)
    return pull


def store_update(session: Session, reported: Pull, at: datetime) -> UpdateResult:
    """Updates the row, unless a later state is known. A push voids the approval of the last head."""
    known = pulls.update_if_newer(session, reported)
    if known.revoked_approver:
        why = f"a new push: {reported.head[:12]} is not approved"
        audit.record(session, reported.target, "voided", audit_subject(reported.number), why, at)
    return known


def end_closed(session: Session, pull: Pull, at: datetime) -> None:
    """Ends the campaigns of a closed or merged pull request; `check_run_updater` ends their check runs."""
    end_campaigns(session, pull, f"pull request #{pull.number} was {pull.state}", at)


def end_campaigns(session: Session, pull: Pull, why: str, at: datetime, *, except_head: str = "") -> None:
    """Ends the campaigns of a pull request, except those of the head `except_head`; recorded in the audit."""
    for campaign in pulls.supersede_campaigns(
        session, pull.target, pull.number, why, at, except_head=except_head
    ):
        audit.record(session, pull.target, "ended", f"campaign:{campaign}", why, at)


def stop_testing(
    session: Session, pull: Pull, why: str, requested_at: datetime, at: datetime, *, wake: Wake | None = None
) -> int:
    """Ends the campaigns and pending requests of a pull request; returns their number.

    The present head is not tested again until somebody requests it. Later events and earlier presses do not
    count.

    requested_at  when the request to stop arrived. GitHub gives no time of a press, so the order of arrival
    decides
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
    """Drops the request of the pull request's job; whether there was one.

    A running job may have decided to test already, so its run number is outdated by a new one.
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
    """The reason why campaigns of earlier heads end."""
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
    """Schedules the evaluation of a pull request for the time `due`.

    again      why the present head is tested even if a campaign tested it, "" to test new heads only
    overrides  fields of the configuration that the requester changes
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
    """The arguments of a request for the present head; reverts `/assay stop`."""
    known = pulls.get(session, target, number)
    head = known.head if known is not None else ""
    if known is not None:
        known.stopped_head = ""
    return {"again": again, "overrides": dict(overrides), "requested_by": requested_by, "head": head}


def _pending_request(session: Session, name: str) -> dict[str, Any]:
    """The arguments of a request that is not carried out yet; events keep it."""
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
    """Approves the commit `head` of a pull request and no other; False if it is no longer the head.

    The caller has checked that `by` has write access.
    """
    if pull.head != head:
        return False
    pull.approved_head, pull.approved_by = head, by
    why = f"{by} approved commit {head[:12]}"
    audit.record(session, pull.target, "approved", audit_subject(pull.number), why, at, actor=by)
    schedule_evaluation(session, pull.target, pull.number, at, at, requested_by=by, wake=wake)
    return True


def audit_subject(number: int) -> str:
    """The audit's subject of a pull request."""
    return f"pull:{number}"
