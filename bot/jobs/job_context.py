"""The context of a job: its spec, services, and a lease that is renewed while it works."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import structlog

from bot.campaigns.services import Services, Settings
from bot.leases import LEASE, Lease, LeaseLost
from bot.store import Database, Session, audit, jobs
from bot.store.models import Campaign, Job, JobState
from bot.store.pulls import PullRequestData

log = structlog.get_logger(__name__)

_BRANCH = "refs/heads/"

#: Replies in the thread where a person asked for a job: (session, job, state, reason, result, time).
Reply = Callable[[Session, Job, JobState, str, Mapping[str, Any], datetime], None]


@dataclass(frozen=True)
class JobSpec:
    """A claimed job; fields as in its row."""

    id: int
    kind: str
    key: str
    run_number: int
    target: str
    bug_id: int | None
    campaign_id: int | None
    arguments: Mapping[str, Any]
    requested_by: str

    @classmethod
    def of(cls, job: Job) -> JobSpec:
        """The spec of a claimed job."""
        return cls(
            id=job.id,
            kind=job.kind,
            key=job.key,
            run_number=jobs.run_number(job),
            target=job.target,
            bug_id=job.bug_id,
            campaign_id=job.campaign_id,
            arguments=dict(job.arguments),
            requested_by=job.requested_by,
        )


class IssueInfo(Protocol):
    """An issue on GitHub (`bot.github.resources.IssueInfo`)."""

    @property
    def number(self) -> int:
        """Its number."""

    @property
    def title(self) -> str:
        """Its title."""

    @property
    def body(self) -> str:
        """Its text."""

    @property
    def state(self) -> str:
        """Open or closed."""

    @property
    def pull(self) -> bool:
        """Whether it is a pull request."""


class GitHubReader(Protocol):
    """GitHub, for reading (`bot.github.reader.Reader`); raises RefusalError and InfrastructureError."""

    def pull(self, target: str, number: int) -> PullRequestData:
        """The pull request as it is now."""

    def permission(self, target: str, login: str) -> str:
        """A login's role in the target: admin, maintain, write, triage, read or none."""

    def search_issues(self, target: str, words: str) -> Sequence[IssueInfo]:
        """Issues that hold the words, the best match first."""

    def branch_head(self, target: str, branch: str) -> str:
        """The commit at the head of a branch."""


@dataclass
class JobContext:
    """One running job.

    github_reader  None without GitHub credentials
    wake           called when a new campaign or job is due
    reply          posts the reply to whoever asked for the job; None for no replies
    """

    job_spec: JobSpec
    database: Database
    settings: Settings
    services: Services
    owner: str
    stop: threading.Event
    github_reader: GitHubReader | None = None
    wake: Callable[[], None] = lambda: None
    reply: Reply | None = None
    _lease: Lease = field(init=False)

    def __post_init__(self) -> None:
        self._lease = Lease(self.stop, self._renew, monotonic=self.services.clock.monotonic)

    @property
    def corpus(self) -> Path:
        """The folder of the corpus."""
        return self.services.corpus or self.settings.data_dir / "corpus"

    @contextmanager
    def transaction(self) -> Iterator[tuple[Session, Job]]:
        """A transaction with the job locked; raises LeaseLost if another process holds it."""
        with self.database.transaction() as session:
            job = jobs.lock_held(session, self.job_spec.id, self.owner, self.job_spec.run_number)
            if job is None:
                raise LeaseLost(self.job_spec.id)
            yield session, job

    def done(self, session: Session, job: Job, reason: str, **result: Any) -> None:
        """Completes the job, in the transaction that writes its result.

        reason  one sentence
        result  JSON; `answer`, safe Markdown, replaces the reason in the reply
        """
        self.finish(session, job, JobState.DONE, reason, result)

    def finish(
        self,
        session: Session,
        job: Job,
        state: JobState,
        reason: str,
        result: Mapping[str, Any],
        *,
        answers: bool = True,
    ) -> None:
        """Ends the job in `state`, records it, and replies if `answers`; one transaction."""
        at = self.services.clock.now()
        jobs.complete(job, state, reason, result, at)
        subject = f"bug:{job.bug_id}" if job.bug_id is not None else f"job:{job.id}"
        evidence = {"job": job.id, "kind": job.kind, "state": state.value}
        audit.record(session, job.target, job.kind, subject, reason, at, evidence=evidence)
        if answers and self.reply is not None:
            self.reply(session, job, state, reason, result, at)

    def heartbeat(self) -> None:
        """Renews the lease when due; raises LeaseLost or Interrupted if the work must end."""
        self._lease.heartbeat()

    def _renew(self) -> None:
        with self.transaction() as (_, job):
            job.lease_until = self.services.clock.now() + LEASE

    def progress(self, done: int, total: int, note: str) -> None:
        """Logs progress."""
        log.info("job.progressed", done=done, total=total, note=note)

    def newest_commit(self, campaign: Campaign) -> str:
        """The head of the branch that a campaign tested; "" if unknown."""
        branch = campaign.ref.removeprefix(_BRANCH)
        if self.github_reader is None or not campaign.ref.startswith(_BRANCH):
            return ""
        return self.github_reader.branch_head(campaign.target, branch)
