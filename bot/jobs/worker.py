"""The worker of a lane: claims the job that has waited longest, does it, and deals with what goes wrong.

As with campaigns, everything is in the rows: what is in memory may be lost at any instruction, and the job is
done again by whoever claims it next.
"""

from __future__ import annotations

import os
import socket
import threading
import uuid
from collections.abc import Callable, Sequence
from datetime import timedelta

import structlog
from structlog.contextvars import bound_contextvars

from bot import errors
from bot.campaigns.context import LEASE, Interrupted
from bot.campaigns.services import Services, Settings
from bot.jobs.answering import settled
from bot.jobs.doing import Doing, Errand, Forge
from bot.jobs.registry import Lane, kinds, of_lane
from bot.store import Database, Session, campaigns, jobs
from bot.store.campaigns import DATABASE_TROUBLE, Abandoned
from bot.store.models import Job, JobState
from fuzzing import errors as fuzzing_errors

log = structlog.get_logger(__name__)

#: Seconds to wait after each failed attempt but the last, as with campaigns' steps.
BACKOFF_S = (15.0, 60.0, 300.0)
#: How long an idle worker sleeps when nobody wakes it.
IDLE_S = 1.0
#: Long jobs run compilers on the same machine as campaigns do, whose results people wait for. One that has
#: waited so long takes its turn all the same, or a busy target would never see a fix verified.
PATIENCE = timedelta(minutes=15)

_FINAL: tuple[type[Exception], ...] = (
    errors.UsageError,
    fuzzing_errors.UsageError,
    errors.RefusalError,
    fuzzing_errors.RefusalError,
)
_RETRIED: tuple[type[Exception], ...] = (
    errors.InfrastructureError,
    fuzzing_errors.InfrastructureError,
    *DATABASE_TROUBLE,
)


class Worker:
    """Does the jobs of one lane, one at a time."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        services: Services,
        lane: Lane,
        *,
        forge: Forge | None = None,
        backoff: Sequence[float] = BACKOFF_S,
    ) -> None:
        self._database, self._settings, self._services = database, settings, services
        self._lane, self._backoff, self._forge = lane, tuple(backoff), forge
        self._wake = threading.Event()
        self.name = f"jobs-{lane.value}"
        self.owner = f"{socket.gethostname()[:32]}:{os.getpid()}:{uuid.uuid4().hex[:12]}"

    def start(self, *, steal: bool = False) -> None:
        """Call once before it works. `steal` frees what dead processes were at: this one is alone."""
        if steal:
            with self._database.transaction() as session:
                jobs.free_others(session, of_lane(self._lane), self.owner)

    def wake(self) -> None:
        """Makes an idle worker look again at once; from any thread."""
        self._wake.set()

    def run_forever(self, stop: threading.Event) -> None:
        """Works until `stop` is set."""
        while not stop.is_set():
            self._wake.clear()
            try:
                worked = self.run_once(stop)
            except _RETRIED:
                log.exception("database_trouble", advice="check ASSAY_DATABASE_URL and the disk")
                worked = False
            if not worked:
                self._wake.wait(IDLE_S)

    def run_once(self, stop: threading.Event | None = None) -> bool:
        """Does the job of the lane that has waited longest; False if none is due."""
        names, present = of_lane(self._lane), self._services.clock.now()
        with self._database.reading() as session:
            if not jobs.any_due(session, names, present) or self._gives_way(session):
                return False
        with self._database.transaction(durable=False) as session:
            job = jobs.claim(session, names, self.owner, present, present + LEASE)
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
        )
        with bound_contextvars(job_id=errand.id, kind=errand.kind):
            self._do(doing, attempts)
        return True

    def _gives_way(self, session: Session) -> bool:
        """Whether a campaign wants the machine, and no job of ours has waited too long."""
        present = self._services.clock.now()
        if self._lane is not Lane.LONG or not campaigns.any_unfinished(session):
            return False
        oldest = jobs.oldest_due(session, of_lane(self._lane), present)
        return oldest is None or present - oldest < PATIENCE

    def _do(self, doing: Doing, attempts: int) -> None:
        log.info("job_started", key=doing.errand.key)
        try:
            kinds()[doing.errand.kind].work(doing)
        except Abandoned:
            log.info("job_abandoned")
            return
        except (Interrupted, KeyboardInterrupt, SystemExit) as signal:
            self._write(doing, lambda _session, job: jobs.release(job))
            if not isinstance(signal, Interrupted):
                raise
            return
        except _FINAL as error:
            self._fail(doing, str(error))
        except _RETRIED as error:
            if attempts > len(self._backoff) or not getattr(error, "passing", True):
                self._fail(doing, f"failed {attempts} times: {error}" if attempts > 1 else str(error))
            else:
                self._postpone(doing, str(error), self._backoff[attempts - 1])
        except Exception as error:
            log.exception("internal_error", key=doing.errand.key)
            self._fail(doing, f"a bug of Assay: {type(error).__name__}; its log has the traceback")

    def _postpone(self, doing: Doing, reason: str, seconds: float) -> None:
        log.warning("job_postponed", reason=reason, retry_in_s=seconds)
        until = self._services.clock.now() + timedelta(seconds=seconds)
        self._write(doing, lambda _session, job: jobs.postpone(job, reason, until))

    def _fail(self, doing: Doing, reason: str) -> None:
        log.warning("job_failed", reason=reason)
        present, given_up = self._services.clock.now(), kinds()[doing.errand.kind].given_up

        def change(session: Session, job: Job) -> None:
            settled(session, job, JobState.FAILED, reason, {}, present)
            if given_up is not None:
                given_up(session, job, reason, present)

        self._write(doing, change)

    def _write(self, doing: Doing, change: Callable[[Session, Job], None]) -> None:
        try:
            with doing.transaction() as (session, job):
                change(session, job)
        except Abandoned:
            log.info("job_abandoned")
