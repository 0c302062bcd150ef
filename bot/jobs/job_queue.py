"""The queue of jobs of one lane: the oldest due job runs, round-robin by repository."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from bot.campaigns.services import Services, Settings
from bot.jobs.job_context import GitHubReader, JobContext, JobSpec, Reply
from bot.jobs.registry import JobKind, Lane, get_job_kind, kinds_in_lane
from bot.leases import LEASE
from bot.store import Database, Session, campaigns, jobs
from bot.store.models import Job, JobState
from bot.worker import Queue, claim_row, internal_error_reason

#: Seconds after each failed attempt but the last; shorter where a person waits.
BACKOFF_S = {Lane.QUICK: (5.0, 15.0, 60.0, 240.0), Lane.LONG: (15.0, 60.0, 300.0)}
#: Seconds an idle worker sleeps unless woken.
IDLE_S = {Lane.QUICK: 0.5, Lane.LONG: 1.0}
#: Campaigns come before long jobs, but a job that has waited this long runs all the same; otherwise a busy
#: target would never see a fix verified.
MAX_WAIT = timedelta(minutes=15)


class JobQueue(Queue):
    """The jobs of one lane."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        services: Services,
        lane: Lane,
        *,
        github_reader: GitHubReader | None = None,
        wake: Callable[[], None] = lambda: None,
        reply: Reply | None = None,
        backoff: Sequence[float] | None = None,
    ) -> None:
        self.name, self.idle_s = f"jobs-{lane.value}", IDLE_S[lane]
        self.backoff = tuple(BACKOFF_S[lane] if backoff is None else backoff)
        self._database, self._settings, self._services = database, settings, services
        self._lane, self._kinds = lane, kinds_in_lane(lane)
        self._github_reader, self._wake, self._reply = github_reader, wake, reply

    def release_other_leases(self, owner: str) -> None:
        """Frees the leases of all other owners."""
        with self._database.transaction() as session:
            jobs.release_other_leases(session, self._kinds, owner)

    def claim(self, owner: str, stop: threading.Event) -> Iterator[_JobRun]:
        """The oldest due job of the lane."""
        at = self._services.clock.now()
        job = claim_row(
            self._database,
            lambda session: self._is_due(session, at),
            lambda session: jobs.claim(session, self._kinds, owner, at, at + LEASE),
        )
        if job is not None:
            yield _JobRun(self._context(job, owner, stop), get_job_kind(job.kind), job.attempts)

    def _context(self, job: Job, owner: str, stop: threading.Event) -> JobContext:
        return JobContext(
            JobSpec.of(job),
            self._database,
            self._settings,
            self._services,
            owner,
            stop,
            self._github_reader,
            self._wake,
            self._reply,
        )

    def _is_due(self, session: Session, at: datetime) -> bool:
        return jobs.any_due(session, self._kinds, at) and not self._yields_to_campaign(session, at)

    def _yields_to_campaign(self, session: Session, at: datetime) -> bool:
        """Whether a campaign is due and no job of this lane has waited MAX_WAIT."""
        if self._lane is not Lane.LONG or not campaigns.any_unfinished(session):
            return False
        oldest = jobs.oldest_due(session, self._kinds, at)
        return oldest is None or at - oldest < MAX_WAIT


@dataclass(frozen=True)
class _JobRun:
    """An attempt at a job."""

    job_context: JobContext
    kind: JobKind
    attempt: int

    @property
    def log_fields(self) -> Mapping[str, object]:
        job_spec = self.job_context.job_spec
        return {"job_id": job_spec.id, "kind": job_spec.kind, "key": job_spec.key}

    def work(self) -> None:
        self.kind.work(self.job_context)

    def release_lease(self) -> None:
        with self.job_context.transaction() as (_, job):
            jobs.release_lease(job)

    def postpone(self, error: Exception, seconds: float) -> None:
        until = self.job_context.services.clock.now() + timedelta(seconds=seconds)
        with self.job_context.transaction() as (_, job):
            jobs.postpone(job, str(error), until)

    def fail(self, error: Exception) -> None:
        """Fails the job with the reason."""
        self._fail(f"failed {self.attempt} times: {error}" if self.attempt > 1 else str(error))

    def record_internal_error(self, bug: Exception) -> None:
        """Fails the job without the text of the error, which may contain anything."""
        self._fail(internal_error_reason(bug))

    def _fail(self, reason: str) -> None:
        with self.job_context.transaction() as (session, job):
            self.job_context.finish(session, job, JobState.FAILED, reason, {}, answers=self.kind.answers)
            if self.kind.on_given_up is not None:
                self.kind.on_given_up(session, job, reason, self.job_context.services.clock.now())
