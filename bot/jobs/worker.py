"""The worker of a lane: claims the job that has waited longest, does it, and deals with what goes wrong."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from bot.campaigns.services import Services, Settings
from bot.jobs.answering import settled
from bot.jobs.doing import Doing, Errand, Forge
from bot.jobs.registry import Kind, Lane, kind_of, of_lane
from bot.leases import LEASE
from bot.loop import Loop
from bot.store import Database, Session, campaigns, jobs
from bot.store.models import JobState

#: Seconds to wait after each failed attempt but the last. What somebody waits for is tried again sooner; the
#: reconciling loop has a pull request looked at anew after that.
BACKOFF_S = {Lane.QUICK: (5.0, 15.0, 60.0, 240.0), Lane.LONG: (15.0, 60.0, 300.0)}
#: How long an idle worker sleeps when nobody wakes it; a push settles for a second.
IDLE_S = {Lane.QUICK: 0.5, Lane.LONG: 1.0}
#: Long jobs run compilers on the same machine as campaigns do, whose results people wait for. One that has
#: waited so long takes its turn all the same, or a busy target would never see a fix verified.
PATIENCE = timedelta(minutes=15)


class Worker(Loop):
    """Does the jobs of one lane, one at a time; `wake` is called where one leaves more to do."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        services: Services,
        lane: Lane,
        *,
        forge: Forge | None = None,
        wake: Callable[[], None] = lambda: None,
        backoff: Sequence[float] | None = None,
    ) -> None:
        super().__init__(f"jobs-{lane.value}", IDLE_S[lane])
        self._database, self._settings, self._services = database, settings, services
        self._lane, self._kinds, self._forge, self._on_work = lane, of_lane(lane), forge, wake
        self._backoff = tuple(BACKOFF_S[lane] if backoff is None else backoff)

    def start(self, *, steal: bool = False) -> None:
        """Call once before it works. `steal` frees what dead processes were at: this one is alone."""
        if steal:
            with self._database.transaction() as session:
                jobs.free_others(session, self._kinds, self.owner)

    def run_once(self, stop: threading.Event | None = None, /) -> bool:
        """Does the job of the lane that has waited longest; False if none is due."""
        present = self._services.clock.now()
        with self._database.reading() as session:
            if not jobs.any_due(session, self._kinds, present) or self._gives_way(session):
                return False
        with self._database.transaction(durable=False) as session:
            job = jobs.claim(session, self._kinds, self.owner, present, present + LEASE)
            if job is None:
                return False
            errand, attempts = Errand.of(job), job.attempts
        doing = Doing(
            errand,
            self._database,
            self._settings,
            self._services,
            self.owner,
            stop or threading.Event(),
            self._forge,
            self._on_work,
        )
        self.do(_Turn(doing, kind_of(errand.kind), attempts, self._backoff))
        return True

    def _gives_way(self, session: Session) -> bool:
        """Whether a campaign wants the machine, and no job of ours has waited too long."""
        present = self._services.clock.now()
        if self._lane is not Lane.LONG or not campaigns.any_unfinished(session):
            return False
        oldest = jobs.oldest_due(session, self._kinds, present)
        return oldest is None or present - oldest < PATIENCE


@dataclass(frozen=True)
class _Turn:
    """A job, begun for the `attempts`-th time."""

    doing: Doing
    kind: Kind
    attempts: int
    backoff: Sequence[float]

    @property
    def about(self) -> Mapping[str, object]:
        """The job."""
        errand = self.doing.errand
        return {"job_id": errand.id, "kind": errand.kind, "key": errand.key}

    def work(self) -> None:
        """Does the job."""
        self.kind.work(self.doing)

    def give_back(self) -> None:
        """Leaves it pending."""
        with self.doing.transaction() as (_, job):
            jobs.release(job)

    def wait(self) -> float | None:
        """By the attempts."""
        return self.backoff[self.attempts - 1] if self.attempts <= len(self.backoff) else None

    def postpone(self, error: Exception, seconds: float) -> None:
        """Leaves it pending until then, with the reason."""
        until = self.doing.services.clock.now() + timedelta(seconds=seconds)
        with self.doing.transaction() as (_, job):
            jobs.postpone(job, str(error), until)

    def fail(self, error: Exception) -> None:
        """Gives it up with what that means for what it is about."""
        self._fail(f"failed {self.attempts} times: {error}" if self.attempts > 1 else str(error))

    def bury(self, bug: Exception) -> None:
        """The same, without the words of the bug: they may hold anything."""
        self._fail(f"a bug of Assay: {type(bug).__name__}; its log has the traceback")

    def _fail(self, reason: str) -> None:
        present = self.doing.services.clock.now()
        with self.doing.transaction() as (session, job):
            settled(session, job, JobState.FAILED, reason, {}, present, answers=self.kind.answers)
            if self.kind.given_up is not None:
                self.kind.given_up(session, job, reason, present)
