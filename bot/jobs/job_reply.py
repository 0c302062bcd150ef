"""The end of a job: its row says what came of it, and whoever asked by a comment is told, once."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from bot.commands.replies import COMMENT, draft_comment
from bot.reports import text
from bot.reports.report import idempotency_key
from bot.store import Session, audit, jobs, outbox, targets
from bot.store.models import Job, JobState

#: What a command puts into a job's arguments so that the answer finds its way: the issue or pull request.
NUMBER = "number"


def finish_job(
    session: Session,
    job: Job,
    state: JobState,
    reason: str,
    result: Mapping[str, Any],
    at: datetime,
    *,
    answers: bool = True,
) -> None:
    """Settles the job and, where a person asked for it in a thread, answers there; one transaction.

    reason  one sentence for people
    result  JSON; its `answer` is Markdown, made safe, and stands for the reason where there is one
    answers whether a person is told; False for jobs that tell in a way of their own
    """
    jobs.complete(job, state, reason, result, at)
    subject = f"bug:{job.bug_id}" if job.bug_id is not None else f"job:{job.id}"
    evidence = {"job": job.id, "kind": job.kind, "state": state.value}
    audit.record(session, job.target, job.kind, subject, reason, at, evidence=evidence)
    number = job.arguments.get(NUMBER)
    if number is None or not job.requested_by or not answers:
        return
    said = str(result.get("answer") or text.plain(reason))
    body = f"`{job.kind}`: {said}" if state is JobState.DONE else f"`{job.kind}` failed: {said}"
    name = idempotency_key(
        COMMENT, targets.stable_name(session, job.target), "job", job.key, str(jobs.run_number(job))
    )
    draft = draft_comment(job.target, int(number), name, body)
    outbox.post(session, [draft], campaign_id=None, issues_per_day=0, at=at)
