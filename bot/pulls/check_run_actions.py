"""The buttons of our check runs, and GitHub's own "Re-run".

A press needs write access, which a job reads from GitHub. The result is written into the check run, which
notifies nobody, and into the audit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import structlog

from bot.approval import WRITE_ROLES
from bot.bugs import issue_filing
from bot.campaigns import intents
from bot.campaigns.provenance import origin
from bot.campaigns.run_with_lease import run_with_lease
from bot.jobs.job_context import JobContext
from bot.pulls import pull_lifecycle
from bot.reports import text
from bot.reports.buttons import FILE, MUTE, MUTE_FOR, REDUCE
from bot.reports.report import idempotency_key
from bot.reports.templates import pluralize
from bot.store import Session, audit, bugs, findings, jobs, mutes, now, outbox, pulls
from bot.store.campaigns import after_commit, get
from bot.store.models import Campaign, Classification, Effect, Finding, JobState
from bot.store.outbox import EffectDraft
from bot.store.pulls import CHECK_RUN_ACTION
from bot.webhooks.intents import CampaignIntent, CheckIntent, Ignored
from fuzzing.registry import Registry

MAX_NOTES = 5  # notes on top of a check run
MAX_REDUCTIONS = 5  # bugs that one press reduces; `/assay reduce` takes the others

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class ActionRequest:
    """A press by a user with write access.

    campaign  the campaign of the check run; None if the commit was not tested
    stopped   who stopped the pull request after the press; "" for nobody
    """

    session: Session
    check: Effect
    campaign: Campaign | None
    sender: str
    at: datetime
    corpus: Path
    wake: pull_lifecycle.Wake
    stopped: str = ""


Action = Callable[[ActionRequest], str]
_ACTIONS: Registry[Action] = Registry("check run action")
#: Registers the action of buttons with these identifiers; it returns its result in one sentence.
check_run_action = _ACTIONS.register


def handle(
    session: Session,
    intent: CheckIntent,
    *,
    wake: pull_lifecycle.Wake | None = None,
    clock: Callable[[], datetime] = now,
) -> object:
    """Enqueues a job for a press, once for each delivery; ignores presses on other check runs."""
    if intent.action not in _ACTIONS.names():
        return Ignored(f"Assay has no button {intent.action!r}")
    checks = pulls.find_check_runs(session, intent.target, intent.head, intent.external_id)
    if not checks:
        return Ignored(f"Assay has no check run at {intent.head[:12]}")
    at = clock()
    for check in checks:
        jobs.enqueue(
            session,
            CHECK_RUN_ACTION,
            intent.target,
            idempotency_key(jobs.key_word(CHECK_RUN_ACTION), intent.delivery, check.key),
            at,
            arguments={"action": intent.action, "check": check.key},
            campaign_id=check.campaign_id,
            requested_by=intent.sender,
        )
    if wake is not None:
        after_commit(session, wake)
    return checks


def run_action(job_context: JobContext) -> None:
    """Executes a press. Raises InfrastructureError if GitHub does not respond."""
    job_spec, at = job_context.job_spec, job_context.services.clock.now()
    sender, action = job_spec.requested_by, str(job_spec.arguments["action"])
    github_reader = job_context.github_reader
    role = run_with_lease(
        job_context,
        lambda *_: "unknown" if github_reader is None else github_reader.permission(job_spec.target, sender),
    )
    with job_context.transaction() as (session, job):
        check = session.get(Effect, str(job_spec.arguments["check"]))
        if check is None:
            jobs.complete(job, JobState.DONE, "its check run was deleted", {}, at)
            return
        campaign = None if check.campaign_id is None else get(session, check.campaign_id)
        stopped = str(job.arguments.get(pull_lifecycle.STOP_REASON, ""))
        request = ActionRequest(
            session, check, campaign, sender, at, job_context.corpus, job_context.wake, stopped
        )
        allowed = role in WRITE_ROLES
        if allowed:
            message = _ACTIONS.get(action)(request)
            _post_note(request, f"{sender}: {message}")
        else:
            message = f"{sender} pressed {action} without write access (role {role})"
        what = "pressed" if allowed else "refused"
        audit.record(session, job_spec.target, what, _audit_subject(request), message, at, actor=sender)
        jobs.complete(job, JobState.DONE, message, {}, at)


@check_run_action(*pull_lifecycle.RERUN_ACTIONS)
def rerun(request: ActionRequest) -> str:
    """Requests another test of the commit, by the same rules: a press approves nothing."""
    number = request.check.number if request.campaign is None else request.campaign.pull
    if number is None:
        return _rerun_branch(request)
    if request.stopped:
        return f"{request.stopped} after the press: the commit is not tested again"
    known = pulls.get(request.session, request.check.target, number)
    head = str(request.check.payload["head_sha"])
    if known is None or known.head != head or known.state != pulls.OPEN:
        return f"{head[:12]} is no longer the head of an open pull request and is not tested again"
    why = f"requested by {request.sender}"
    pull_lifecycle.schedule_evaluation(
        request.session,
        known.target,
        number,
        request.at,
        request.at,
        again=why,
        requested_by=request.sender,
        wake=request.wake,
    )
    return "another test is queued, with a check run of its own"


def _rerun_branch(request: ActionRequest) -> str:
    old = request.campaign
    if old is None:
        return "there is no campaign to repeat"
    intent = CampaignIntent(
        target=old.target,
        head=old.head,
        base=old.base,
        ref=old.ref,
        trigger=f"rerun:{idempotency_key(request.check.key, request.at.isoformat())[:16]}",
        requested_by=request.sender,
        overrides=old.overrides,
    )
    made = intents.handle(request.session, intent, wake=request.wake)
    return f"another test is queued: campaign {made.id}"


@check_run_action(REDUCE.identifier)
def reduce(request: ActionRequest) -> str:
    """Requests more reduction of the new findings."""
    candidates = [one for one in _list_new_findings(request) if one.bug_id is not None]
    first: dict[int, Finding] = {}
    for one in candidates:
        first.setdefault(one.bug_id or 0, one)
    for bug_id, one in list(first.items())[:MAX_REDUCTIONS]:
        jobs.enqueue(
            request.session,
            "reduce",
            request.check.target,
            idempotency_key("reduce", request.check.key, str(bug_id), request.at.isoformat()),
            request.at,
            bug_id=bug_id,
            campaign_id=one.campaign_id,
            arguments={"case": one.case_id, "budget": 0.0},
            requested_by=request.sender,
        )
    if not first:
        return "there are no new bugs to reduce"
    after_commit(request.session, request.wake)
    more = f", the first of {len(first)}" if len(first) > MAX_REDUCTIONS else ""
    return f"reductions of {pluralize(min(len(first), MAX_REDUCTIONS), 'bug')} are queued{more}"


@check_run_action(MUTE.identifier)
def mute(request: ActionRequest) -> str:
    """Mutes the operators of the new findings; check runs still show findings."""
    names = (origin(request.corpus, one.case_id).operator for one in _list_new_findings(request))
    operators = sorted({name for name in names if name})
    until = request.at + MUTE_FOR
    why = f"pressed on {request.check.payload['head_sha'][:12]}"
    for operator in operators:
        mutes.add(request.session, request.check.target, operator, until, request.sender, why, request.at)
    if not operators:
        return "no new finding has a single operator to mute"
    return f"muted {', '.join(operators)} until {until:%Y-%m-%d}; /assay unmute ends it"


@check_run_action(FILE.identifier)
def file(request: ActionRequest) -> str:
    """Approves the held issues of the campaign; each is checked before it is filed."""
    held = outbox.held_by(request.session, request.campaign.id) if request.campaign is not None else []
    for effect in held:
        bug = bugs.of_id(request.session, effect.bug_id)
        issue_filing.request_checks(
            request.session, effect.key, effect.target, bug, request.at, request.sender
        )
    if not held:
        return "no issue is held here"
    after_commit(request.session, request.wake)
    return f"{pluralize(len(held), 'issue')} approved; each is filed if the newest commit still shows the bug"


def _list_new_findings(request: ActionRequest) -> list[Finding]:
    if request.campaign is None:
        return []
    found = findings.of_campaign(request.session, request.campaign.id)
    return [one for one in found if one.classification == Classification.REGRESSION.value]


def _post_note(request: ActionRequest, message: str) -> None:
    """Writes the result of a press on top of the check run's summary."""
    check = request.check
    output: Mapping[str, Any] = check.payload["output"]
    notes, summary = _split_notes(str(output["summary"]))
    text_with_note = "\n>\n".join([f"> {text.plain(message)}", *notes[: MAX_NOTES - 1]]) + f"\n\n{summary}"
    body = check.payload | {"output": {**output, "summary": text_with_note}}
    draft = EffectDraft(check.kind, check.key, check.target, body, editable=True)
    outbox.post(request.session, [draft], campaign_id=check.campaign_id, issues_per_day=0, at=request.at)


def _split_notes(summary: str) -> tuple[list[str], str]:
    """The notes on top of a summary, and the summary itself."""
    lines = summary.split("\n")
    first = next((at for at, line in enumerate(lines) if not line.startswith(">")), len(lines))
    return [line for line in lines[:first] if line != ">"], "\n".join(lines[first:]).lstrip("\n")


def _audit_subject(request: ActionRequest) -> str:
    if request.campaign is not None and request.campaign.pull is not None:
        return pull_lifecycle.audit_subject(request.campaign.pull)
    return f"effect:{request.check.key}"
