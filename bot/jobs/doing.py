"""What a job's work has to hand: its errand, the other rooms, and a lease that is renewed while it works."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import structlog

from bot.campaigns.services import Services, Settings
from bot.jobs.answering import settled
from bot.leases import LEASE, Abandoned, Lease
from bot.pulls import forge as pulls
from bot.store import Database, Session, jobs
from bot.store.models import Campaign, Job, JobState

log = structlog.get_logger(__name__)

_BRANCH = "refs/heads/"


@dataclass(frozen=True)
class Errand:
    """A job as its worker was given it; fields as in its row."""

    id: int
    kind: str
    key: str
    turn: int
    target: str
    bug_id: int | None
    campaign_id: int | None
    arguments: Mapping[str, Any]
    asked_by: str

    @classmethod
    def of(cls, job: Job) -> Errand:
        """The errand of a claimed job."""
        return cls(
            id=job.id,
            kind=job.kind,
            key=job.key,
            turn=jobs.turn(job),
            target=job.target,
            bug_id=job.bug_id,
            campaign_id=job.campaign_id,
            arguments=dict(job.arguments),
            asked_by=job.asked_by,
        )


class IssueFacts(Protocol):
    """An issue on GitHub (`bot.github.facts.IssueFacts`)."""

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


class Forge(pulls.Forge, Protocol):
    """GitHub, for reading (`bot.github.reading.Reader`); raises RefusalError and InfrastructureError."""

    def search_issues(self, target: str, words: str) -> Sequence[IssueFacts]:
        """Issues that hold the words, the best match first."""

    def branch_head(self, target: str, branch: str) -> str:
        """The commit at the head of a branch."""


@dataclass
class Doing:
    """One job at work.

    forge  None where there is nothing to sign in to GitHub with
    wake   to be called once there is a campaign or another job to do
    """

    errand: Errand
    database: Database
    settings: Settings
    services: Services
    owner: str
    stop: threading.Event
    forge: Forge | None = None
    wake: Callable[[], None] = lambda: None
    _lease: Lease = field(init=False)

    def __post_init__(self) -> None:
        self._lease = Lease(self.stop, self._renew, monotonic=self.services.clock.monotonic)

    @property
    def corpus(self) -> Path:
        """The folder of the corpus."""
        return self.services.corpus or self.settings.data_dir / "corpus"

    @contextmanager
    def transaction(self) -> Iterator[tuple[Session, Job]]:
        """A transaction over the job, locked; raises Abandoned if it is no longer ours."""
        with self.database.transaction() as session:
            job = jobs.held(session, self.errand.id, self.owner, self.errand.turn)
            if job is None:
                raise Abandoned(self.errand.id)
            yield session, job

    def done(self, session: Session, job: Job, reason: str, **result: Any) -> None:
        """Settles the job, in the transaction that wrote what came of it.

        reason  one sentence for people
        result  JSON; `answer`, Markdown made safe, is what whoever asked is told
        """
        settled(session, job, JobState.DONE, reason, result, self.services.clock.now())

    def look(self) -> None:
        """Renews the lease when it is time; raises Abandoned or Interrupted if the work must end now."""
        self._lease.look()

    def _renew(self) -> None:
        with self.transaction() as (_, job):
            job.lease_until = self.services.clock.now() + LEASE

    def progress(self, done: int, total: int, note: str) -> None:
        """Tells the log, where whoever runs the service can follow."""
        log.info("job_progress", done=done, total=total, note=note)

    def newest(self, campaign: Campaign) -> str:
        """The newest commit of the branch that a campaign tested; "" where that is not to be had."""
        branch = campaign.ref.removeprefix(_BRANCH)
        if self.forge is None or not campaign.ref.startswith(_BRANCH):
            return ""
        return self.forge.branch_head(campaign.target, branch)
