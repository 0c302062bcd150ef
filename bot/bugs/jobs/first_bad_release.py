"""The job `first_bad_release`: searches the first bad release of a filed bug and posts it in the issue.

It yields to campaigns and to other jobs that run compilers, and resumes from its journal.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import timedelta

from bot.bisection.report import format_lines
from bot.bugs import change_search, first_bad_release, reproduction
from bot.bugs.first_bad_release import FIRST_BAD_RELEASE
from bot.bugs.release_bisection import ReleaseBisection, release_range
from bot.jobs.job_context import JobContext
from bot.jobs.registry import Lane, job_kind, kinds_in_lane
from bot.store import bugs, campaigns, jobs
from bot.store.models import Bug

#: How long it yields to other work, and how often it checks for some.
YIELD_DELAY, CHECK_INTERVAL_S = timedelta(minutes=1), 5.0
#: After this time it no longer yields, or it would never end on a busy machine.
MAX_WAIT = timedelta(hours=12)


class _YieldToOtherWork(Exception):  # noqa: N818 - control flow, not an error
    """Other work waits for the machine."""


@job_kind(FIRST_BAD_RELEASE)
def find(job_context: JobContext) -> None:
    """Runs the search, stores the result with the bug, and posts it if it is reportable."""
    with job_context.database.reading() as session:
        known = reproduction.load_bug_case(session, job_context)
        quiet = first_bad_release.find_skip_reason(known.bug)
    if quiet:
        with job_context.transaction() as (session, job):
            job_context.done(session, job, quiet)
        return
    lease = _YieldingLease(job_context)
    search = ReleaseBisection(
        job_context, known, release_range(job_context, known), known.config.budget, lease
    )
    try:
        lease.heartbeat()
        answer = change_search.find_introduction(search)
    except _YieldToOtherWork:
        _requeue(job_context)
        return
    with job_context.transaction() as (session, job):
        bug = session.get_one(Bug, known.bug.id)
        if bugs.occurrence(bug) != bugs.occurrence(known.bug):
            job_context.done(
                session, job, "the bug recurred meanwhile; the result is for its previous occurrence"
            )
            return
        bugs.set_fact(session, bug, "bisection", {**bug.facts.get("bisection", {}), "since": answer})
        first_bad_release.post_comment(
            session, bug, str(job_context.job_spec.arguments["effect"]), job_context.services.clock.now()
        )
        job_context.done(session, job, format_lines(answer)[0], since=answer)


@dataclass
class _YieldingLease:
    """Renews the job's lease, and yields to other work."""

    job_context: JobContext
    _looked: float = field(default=-CHECK_INTERVAL_S, init=False)

    def heartbeat(self) -> None:
        """As `JobContext.heartbeat`; raises _YieldToOtherWork too."""
        self.job_context.heartbeat()
        present = time.monotonic()
        if present - self._looked >= CHECK_INTERVAL_S:
            self._looked = present
            if _other_work_waits(self.job_context):
                raise _YieldToOtherWork

    def progress(self, done: int, total: int, note: str) -> None:
        """As `JobContext.progress`."""
        self.job_context.progress(done, total, note)


def _other_work_waits(job_context: JobContext) -> bool:
    """Whether a campaign or another job waits for the machine, and this job has not waited for MAX_WAIT."""
    at = job_context.services.clock.now()
    others = [name for name in kinds_in_lane(Lane.LONG) if name != FIRST_BAD_RELEASE]
    with job_context.database.reading() as session:
        mine = jobs.of_key(session, job_context.job_spec.key)
        if mine is None or at - mine.created_at >= MAX_WAIT:
            return False
        return campaigns.any_unfinished(session) or jobs.any_due(session, others, at)


def _requeue(job_context: JobContext) -> None:
    """Releases the job as not begun, due after YIELD_DELAY."""
    with job_context.transaction() as (_, job):
        jobs.release_lease(job)
        jobs.postpone(job, "yields to other work", job_context.services.clock.now() + YIELD_DELAY)
