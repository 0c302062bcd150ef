"""The reply to a job that a comment asked for: one comment in that thread."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from bot.commands.replies import COMMENT, draft_comment
from bot.reports import text
from bot.reports.report import idempotency_key
from bot.store import Session, jobs, outbox, targets
from bot.store.models import Job, JobState

#: The job argument that names the issue or pull request to reply in.
NUMBER = "number"


def post_job_reply(
    session: Session, job: Job, state: JobState, reason: str, result: Mapping[str, Any], at: datetime
) -> None:
    """Posts what came of a job where a person asked for it; nothing for a job that no comment asked for.

    reason  one sentence; replaced by `answer` of the result, which is Markdown made safe
    """
    number = job.arguments.get(NUMBER)
    if number is None or not job.requested_by:
        return
    message = str(result.get("answer") or text.plain(reason))
    body = f"`{job.kind}`: {message}" if state is JobState.DONE else f"`{job.kind}` failed: {message}"
    name = idempotency_key(
        COMMENT, targets.stable_name(session, job.target), "job", job.key, str(jobs.run_number(job))
    )
    draft = draft_comment(job.target, int(number), name, body)
    outbox.post(session, [draft], campaign_id=None, issues_per_day=0, at=at)
