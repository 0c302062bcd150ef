"""The buttons of our check runs, and GitHub's own "Re-run".

Whoever presses one needs write access, which GitHub must be asked for: the event becomes a job, and the job
does it. What came of it is told in the check run itself, which is quiet, and in the audit.
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

MAX_NOTES = 5  # notes on top of a check run
MAX_REDUCTIONS = 5  # findings that one press reduces; the others can be asked for by command

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class ActionRequest:
    """A button that was pressed, by somebody who may.

    campaign  whose check run it is; None for a check run that says why there is none
    stopped   who has stopped the pull request since, in words; "" for nobody
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
_ACTIONS: dict[str, Action] = {}


def check_run_action(*identifiers: str) -> Callable[[Action], Action]:
    """Decorator: what a button does; it returns what came of it, in one sentence for people."""

    def register(action: Action) -> Action:
        _ACTIONS.update(dict.fromkeys(identifiers, action))
        return action

    return register


def handle(
    session: Session,
    intent: CheckIntent,
    *,
    wake: pull_lifecycle.Wake | None = None,
    clock: Callable[[], datetime] = now,
) -> object:
    """A press becomes a job, once for each delivery; one of a check run that is not ours becomes nothing."""
    if intent.action not in _ACTIONS:
        return Ignored(f"no button of ours is called {intent.action!r}")
    checks = pulls.find_check_runs(session, intent.target, intent.head, intent.external_id)
    if not checks:
        return Ignored(f"no check run of ours is at {intent.head[:12]}")
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
    """Does what a button asks for. Raises InfrastructureError where GitHub does not answer."""
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
            jobs.complete(job, JobState.DONE, "its check run is gone", {}, at)
            return
        campaign = None if check.campaign_id is None else get(session, check.campaign_id)
        stopped = str(job.arguments.get(pull_lifecycle.STOP_REASON, ""))
        request = ActionRequest(
            session, check, campaign, sender, at, job_context.corpus, job_context.wake, stopped
        )
        allowed = role in WRITE_ROLES
        if allowed:
            said = _ACTIONS[action](request)
            _post_note(request, f"{sender}: {said}")
        else:
            said = f"{sender} pressed {action} and has no write access ({role})"
        what = "pressed" if allowed else "refused"
        audit.record(session, job_spec.target, what, _audit_subject(request), said, at, actor=sender)
        jobs.complete(job, JobState.DONE, said, {}, at)


@check_run_action(*pull_lifecycle.RERUN_ACTIONS)
def rerun(request: ActionRequest) -> str:
    """Has the commit tested again, by the rules of its first test: pressing releases nothing."""
    number = request.check.number if request.campaign is None else request.campaign.pull
    if number is None:
        return _rerun_branch(request)
    if request.stopped:
        return f"{request.stopped} after this: it is not tested again"
    known = pulls.get(request.session, request.check.target, number)
    head = str(request.check.payload["head_sha"])
    if known is None or known.head != head or known.state != pulls.OPEN:
        return f"{head[:12]} is not the head of an open pull request any more, so it is not tested again"
    why = f"asked for by {request.sender}"
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
    return "asked for another test; it has a check run of its own"


def _rerun_branch(request: ActionRequest) -> str:
    """The same for a commit of a branch."""
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
    return f"asked for another test: campaign {made.id}"


@check_run_action(REDUCE.identifier)
def reduce(request: ActionRequest) -> str:
    """Asks for a further reduction of what is new here."""
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
        return "there is nothing to reduce"
    after_commit(request.session, request.wake)
    more = f", the first of {len(first)}" if len(first) > MAX_REDUCTIONS else ""
    return f"asked for smaller programs of {pluralize(min(len(first), MAX_REDUCTIONS), 'bug')}{more}"


@check_run_action(MUTE.identifier)
def mute(request: ActionRequest) -> str:
    """Silences the operators of what is new here; what is found is still shown in check runs."""
    names = (origin(request.corpus, one.case_id).operator for one in _list_new_findings(request))
    operators = sorted({name for name in names if name})
    until = request.at + MUTE_FOR
    why = f"pressed on {request.check.payload['head_sha'][:12]}"
    for operator in operators:
        mutes.add(request.session, request.check.target, operator, until, request.sender, why, request.at)
    if not operators:
        return "nothing here has one operator that could be muted"
    return f"muted {', '.join(operators)} until {until:%Y-%m-%d}; /assay unmute ends it"


@check_run_action(FILE.identifier)
def file(request: ActionRequest) -> str:
    """Releases the issues that are held about what is new here, each after a last look."""
    held = outbox.held_by(request.session, request.campaign.id) if request.campaign is not None else []
    for effect in held:
        bug = bugs.of_id(request.session, effect.bug_id)
        issue_filing.request_checks(
            request.session, effect.key, effect.target, bug, request.at, request.sender
        )
    if not held:
        return "nothing is held here"
    after_commit(request.session, request.wake)
    return f"{pluralize(len(held), 'issue')} released; each is filed if the newest commit still shows it"


def _list_new_findings(request: ActionRequest) -> list[Finding]:
    """What is new here."""
    if request.campaign is None:
        return []
    found = findings.of_campaign(request.session, request.campaign.id)
    return [one for one in found if one.classification == Classification.REGRESSION.value]


def _post_note(request: ActionRequest, said: str) -> None:
    """Says in the check run what came of a press: above all else, and changed in place."""
    check = request.check
    output: Mapping[str, Any] = check.payload["output"]
    notes, summary = _split_notes(str(output["summary"]))
    told = "\n>\n".join([f"> {text.plain(said)}", *notes[: MAX_NOTES - 1]]) + f"\n\n{summary}"
    body = check.payload | {"output": {**output, "summary": told}}
    draft = EffectDraft(check.kind, check.key, check.target, body, editable=True)
    outbox.post(request.session, [draft], campaign_id=check.campaign_id, issues_per_day=0, at=request.at)


def _split_notes(summary: str) -> tuple[list[str], str]:
    """What was said on top of a summary before, and the summary itself."""
    lines = summary.split("\n")
    first = next((at for at, line in enumerate(lines) if not line.startswith(">")), len(lines))
    return [line for line in lines[:first] if line != ">"], "\n".join(lines[first:]).lstrip("\n")


def _audit_subject(request: ActionRequest) -> str:
    if request.campaign is not None and request.campaign.pull is not None:
        return pull_lifecycle.audit_subject(request.campaign.pull)
    return f"effect:{request.check.key}"
