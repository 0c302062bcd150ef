"""The worker of a lane: claims the oldest due job, runs it, handles failures."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from bot.campaigns.services import Services, Settings
from bot.jobs.job_context import GitHubReader, JobContext, JobSpec, Reply
from bot.jobs.registry import JobKind, Lane, get_job_kind, kinds_in_lane
from bot.leases import LEASE
from bot.loop import Loop
from bot.store import Database, Session, campaigns, jobs
from bot.store.models import JobState

#: Seconds after each failed attempt but the last; shorter where a person waits.
BACKOFF_S = {Lane.QUICK: (5.0, 15.0, 60.0, 240.0), Lane.LONG: (15.0, 60.0, 300.0)}
#: Seconds an idle worker sleeps unless woken.
IDLE_S = {Lane.QUICK: 0.5, Lane.LONG: 1.0}
#: Campaigns come before long jobs, but a job that has waited this long runs all the same; otherwise a busy
#: target would never see a fix verified.
MAX_WAIT = timedelta(minutes=15)


class Worker(Loop):
    """Runs the jobs of one lane, one at a time."""

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
        super().__init__(f"jobs-{lane.value}", IDLE_S[lane])
        self._database, self._settings, self._services = database, settings, services
        self._lane, self._kinds, self._forge, self._on_work = lane, kinds_in_lane(lane), github_reader, wake
        self._reply = reply
        self._backoff = tuple(BACKOFF_S[lane] if backoff is None else backoff)

    def start(self, *, free_other_leases: bool = False) -> None:
        """Call once before it works. `free_other_leases`: other owners are dead; free their leases."""
        if free_other_leases:
            with self._database.transaction() as session:
                jobs.release_other_leases(session, self._kinds, self.owner)

    def run_once(self, stop: threading.Event | None = None, /) -> bool:
        """Runs the oldest due job of the lane; False if none is due."""
        present = self._services.clock.now()
        with self._database.reading() as session:
            if not jobs.any_due(session, self._kinds, present) or self._yields_to_campaign(session):
                return False
        with self._database.transaction(durable=False) as session:
            job = jobs.claim(session, self._kinds, self.owner, present, present + LEASE)
            if job is None:
                return False
            job_spec, attempts = JobSpec.of(job), job.attempts
        job_context = JobContext(
            job_spec,
            self._database,
            self._settings,
            self._services,
            self.owner,
            stop or threading.Event(),
            self._forge,
            self._on_work,
            self._reply,
        )
        self.process(_JobRun(job_context, get_job_kind(job_spec.kind), attempts, self._backoff))
        return True

    def _yields_to_campaign(self, session: Session) -> bool:
        """Whether a campaign is due and no job of this lane has waited MAX_WAIT."""
        present = self._services.clock.now()
        if self._lane is not Lane.LONG or not campaigns.any_unfinished(session):
            return False
        oldest = jobs.oldest_due(session, self._kinds, present)
        return oldest is None or present - oldest < MAX_WAIT


@dataclass(frozen=True)
class _JobRun:
    """A job at its `attempts`-th attempt."""

    job_context: JobContext
    kind: JobKind
    attempts: int
    backoff: Sequence[float]

    @property
    def log_fields(self) -> Mapping[str, object]:
        job_spec = self.job_context.job_spec
        return {"job_id": job_spec.id, "kind": job_spec.kind, "key": job_spec.key}

    def work(self) -> None:
        self.kind.work(self.job_context)

    def release_lease(self) -> None:
        with self.job_context.transaction() as (_, job):
            jobs.release_lease(job)

    def wait(self) -> float | None:
        return self.backoff[self.attempts - 1] if self.attempts <= len(self.backoff) else None

    def postpone(self, error: Exception, seconds: float) -> None:
        until = self.job_context.services.clock.now() + timedelta(seconds=seconds)
        with self.job_context.transaction() as (_, job):
            jobs.postpone(job, str(error), until)

    def fail(self, error: Exception) -> None:
        """Fails the job with the reason."""
        self._fail(f"failed {self.attempts} times: {error}" if self.attempts > 1 else str(error))

    def record_internal_error(self, bug: Exception) -> None:
        """Fails the job without the text of the error, which may contain anything."""
        self._fail(f"a bug of Assay: {type(bug).__name__}; its log has the traceback")

    def _fail(self, reason: str) -> None:
        with self.job_context.transaction() as (session, job):
            self.job_context.finish(session, job, JobState.FAILED, reason, {}, answers=self.kind.answers)
            if self.kind.on_given_up is not None:
                self.kind.on_given_up(session, job, reason, self.job_context.services.clock.now())
