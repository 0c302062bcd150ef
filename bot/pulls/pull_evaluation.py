"""Evaluates a pull request: reads it from GitHub, decides, and creates its campaign or records why not.

GitHub and git are read before the transaction that writes. If the pull request changed meanwhile, that
transaction writes nothing and the job runs again.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import structlog

from bot.campaigns import intents
from bot.campaigns.run_with_lease import run_with_lease
from bot.errors import RefusalError, UsageError
from bot.jobs.job_context import JobContext
from bot.pulls import pull_lifecycle
from bot.pulls.dependencies import GitHubReader
from bot.pulls.pull_policy import AWAIT_APPROVAL, INVALID_CONFIG, SKIP, TEST, Decision, PullPolicy
from bot.reports import progress_check
from bot.reports.pull import draft_awaiting_approval, draft_config_error
from bot.store import Database, Session, audit, jobs, outbox, pulls, targets
from bot.store.models import Campaign, CampaignState, Job, JobState, Pull
from bot.store.outbox import EffectDraft
from bot.store.pulls import OPEN
from bot.webhooks.intents import CampaignIntent

log = structlog.get_logger(__name__)


def evaluate(job_context: JobContext) -> None:
    """Runs the job of one pull request. Raises InfrastructureError if a retry may succeed."""
    job_spec, at = job_context.job_spec, job_context.services.clock.now()
    number = int(job_spec.arguments["number"])
    try:
        reported = run_with_lease(
            job_context, lambda *_: _fetch(job_context.github_reader, job_spec.target, number)
        )
        pull = _store(job_context, reported, number, at)
        decision = run_with_lease(job_context, lambda *_: _decide(job_context, pull))
    except (RefusalError, UsageError) as error:
        pull, decision = None, Decision(SKIP, str(error))
    with job_context.transaction() as (session, job):
        known = pulls.get(session, job_spec.target, number)
        if pull is not None and (known is None or not _is_unchanged(pull, known)):
            jobs.release_lease(job)
            return
        if known is None:
            jobs.complete(job, JobState.DONE, decision.why, {}, at)
            return
        done = _apply_decision(session, job_context, known, decision, at)
        _record_decision(session, job, known, decision, at)
        result = {"what": decision.what, "head": known.head, "why": decision.why} | done
        jobs.complete(job, JobState.DONE, decision.why, result, at)
    log.info("pull.evaluated", target=job_spec.target, pull=number, what=decision.what, why=decision.why)


def refresh_pull(
    database: Database, github_reader: GitHubReader | None, target: str, number: int, at: datetime
) -> Pull | None:
    """The stored pull request, updated from GitHub; as stored before without credentials.

    Changes are applied like those of a webhook, because no webhook will report them again.
    """
    with database.reading() as session:
        before = pulls.get(session, target, number)
    reported = _fetch(github_reader, target, number)
    if reported is not None:
        with database.transaction() as session:
            known = pulls.get(session, target, number)
            if before is None or (known is not None and pulls.has_same_data(known, before)):
                _store_or_apply(session, reported, at)
    with database.reading() as session:
        return pulls.get(session, target, number)


def _store_or_apply(session: Session, reported: Pull, at: datetime) -> None:
    known = pulls.get(session, reported.target, reported.number)
    if known is None or pulls.has_relevant_change(reported, known):
        pull_lifecycle.apply_update(session, reported, at)
    else:
        pull_lifecycle.store_update(session, reported, at)


def _fetch(github_reader: GitHubReader | None, target: str, number: int) -> Pull | None:
    """The pull request on GitHub; None without credentials."""
    return None if github_reader is None else pulls.row(target, github_reader.pull(target, number))


def _store(job_context: JobContext, reported: Pull | None, number: int, at: datetime) -> Pull | None:
    """Updates the row, unless an event changed the pull request since GitHub was read; returns the row."""
    with job_context.transaction() as (session, job):
        if reported is not None and reported.target == job.target:
            known = pull_lifecycle.store_update(session, reported, at)
            if not known.stale and known.pull.state != OPEN:
                pull_lifecycle.end_closed(session, known.pull, at)
        return pulls.get(session, job.target, number)


def _decide(job_context: JobContext, pull: Pull | None) -> Decision:
    if pull is None or pull.state != OPEN:
        return Decision(SKIP, f"it is {pull.state}" if pull else "it is unknown")
    if pull.stopped_head == pull.head:
        return Decision(SKIP, f"commit {pull.head[:12]} was stopped; `/assay run` tests it")
    return PullPolicy(job_context.services.repositories, job_context.github_reader).decide(pull)


def _apply_decision(
    session: Session, job_context: JobContext, pull: Pull, decision: Decision, at: datetime
) -> dict[str, Any]:
    """Writes the campaign or the check run; returns fields of the job's result."""
    pull_lifecycle.end_campaigns(
        session, pull, pull_lifecycle.explain_superseded(pull), at, except_head=pull.head
    )
    if decision.what == TEST:
        return {"campaign": _ensure_campaign(session, job_context, pull, decision, at)}
    if decision.what == AWAIT_APPROVAL:
        stable_name = targets.stable_name(session, pull.target)
        _post(session, draft_awaiting_approval(stable_name, pull, decision.why), decision, at)
    elif decision.what == INVALID_CONFIG and decision.should_report:
        stable_name = targets.stable_name(session, pull.target)
        _post(session, draft_config_error(stable_name, pull, decision.why), decision, at)
    return {}


def _post(session: Session, draft: EffectDraft, decision: Decision, at: datetime) -> None:
    if decision.should_report:
        outbox.post(session, [draft], campaign_id=None, issues_per_day=0, at=at)


def _ensure_campaign(
    session: Session, job_context: JobContext, pull: Pull, decision: Decision, at: datetime
) -> int | None:
    """The id of the campaign that tests the head; creates one if there is none or another is requested."""
    config, arguments = decision.config, job_context.job_spec.arguments
    assert config is not None
    request = arguments if arguments.get("head") == pull.head else {}
    past = pulls.campaigns_of(session, pull.target, pull.number, pull.head, decision.base)
    if past and past[-1].state != CampaignState.SUPERSEDED.value and not request.get("again"):
        return past[-1].id
    pull_lifecycle.end_campaigns(session, pull, f"superseded: {pull.head[:12]} is tested again", at)
    campaign = intents.handle(
        session, _build_intent(pull, decision.base, len(past), request), wake=job_context.wake
    )
    campaign.config = config.to_json()
    _post_queued_check(session, campaign, at)
    return campaign.id


def _post_queued_check(session: Session, campaign: Campaign, at: datetime) -> None:
    stable_name = targets.stable_name(session, campaign.target)
    queued = progress_check.CampaignProgress.queued(campaign, stable_name, pulls.before(session, campaign))
    outbox.post(
        session, [progress_check.draft_check_run(queued)], campaign_id=campaign.id, issues_per_day=0, at=at
    )


def _record_decision(session: Session, job: Job, pull: Pull, decision: Decision, at: datetime) -> None:
    """Records the decision in the audit, unless it is the same as before for this head."""
    reported = {"what": decision.what, "head": pull.head, "why": decision.why}
    if {name: job.result.get(name) for name in reported} == reported:
        return
    words = {TEST: "tested", AWAIT_APPROVAL: "held", SKIP: "silent", INVALID_CONFIG: "silent"}
    audit.record(
        session,
        pull.target,
        words[decision.what],
        pull_lifecycle.audit_subject(pull.number),
        decision.why,
        at,
        evidence={"head": pull.head, "base": decision.base},
    )


def _is_unchanged(read: Pull, known: Pull) -> bool:
    """Whether a decision about one holds for the other."""
    reported = ("head", "base", "draft", "state", "association", "author", "head_repository")
    ours = ("approved_head", "stopped_head")
    return all(getattr(read, name) == getattr(known, name) for name in (*reported, *ours))


def _build_intent(pull: Pull, base: str, past: int, request: Mapping[str, Any]) -> CampaignIntent:
    """The intent of the campaign; a repeated one of the same commits has its own trigger."""
    again = f":{past + 1}" if past else ""
    return CampaignIntent(
        target=pull.target,
        head=pull.head,
        base=base,
        ref=f"refs/pull/{pull.number}/head",
        trigger=f"pull_request:{pull.number}{again}",
        pull=pull.number,
        requested_by=str(request.get("requested_by", "")),
        overrides=request.get("overrides") or {},
    )
