"""The two threads of this room: one looks at pull requests and presses, the other keeps check runs true.

They are two because the first may wait for git or GitHub, for minutes, and the second may not.
"""

from __future__ import annotations

import os
import socket
import threading
import uuid
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

import structlog

from bot.errors import InfrastructureError
from bot.jobs.doing import Errand
from bot.pulls.checking import Checks
from bot.store import Database, jobs, now
from bot.store.models import JobState
from fuzzing.errors import InfrastructureError as FuzzingInfrastructureError

#: Longer than any fetch may take but the first of a large repository. Two workers at one job do no harm: the
#: mirror's lock makes one wait, and only one of them finds the job in its turn.
LEASE = timedelta(minutes=5)
#: Seconds after each failed attempt; after the last the job is given up, and the hourly sweep starts it anew.
BACKOFF_S = (5.0, 15.0, 60.0, 240.0)
POLL_S = 0.5  # one indexed look; the settling of a push is a second
CHECKS_S = 1.0  # how soon a new step of a campaign is seen

#: Does an errand for its owner, at a time. Raises InfrastructureError where it is worth trying again.
Work = Callable[[Errand, str, datetime], None]

log = structlog.get_logger(__name__)


class Desk:
    """Does the jobs of this room; `work` has a function for each kind."""

    name = "pulls"

    def __init__(
        self, database: Database, work: Mapping[str, Work], clock: Callable[[], datetime] = now
    ) -> None:
        self._database, self._work, self._clock = database, dict(work), clock
        self._awake = threading.Event()
        self.owner = f"{socket.gethostname()[:32]}:{os.getpid()}:{uuid.uuid4().hex[:12]}"

    def start(self, *, steal: bool = False) -> None:
        """Call once before it works.

        `steal` frees what dead processes were at, for a process that knows itself to be alone.
        """
        if steal:
            with self._database.transaction() as session:
                jobs.free_others(session, self._work, self.owner)

    def wake(self) -> None:
        """Makes an idle desk look at once; from any thread."""
        self._awake.set()

    def run_forever(self, stop: threading.Event) -> None:
        """Works until `stop` is set."""
        while not stop.is_set():
            self._awake.clear()
            try:
                worked = self.run_once()
            except InfrastructureError as error:
                log.warning("pulls_not_read", reason=str(error))
                worked = False
            if not worked:
                self._awake.wait(POLL_S)

    def run_once(self) -> bool:
        """Does the job that has been due longest; False if none is."""
        at = self._clock()
        with self._database.reading() as session:
            if not jobs.any_due(session, self._work, at):
                return False
        with self._database.transaction() as session:
            job = jobs.claim(session, self._work, self.owner, at, at + LEASE)
            if job is None:
                return False
            errand, attempts = Errand.of(job), job.attempts
        with structlog.contextvars.bound_contextvars(job=errand.id):
            try:
                self._work[errand.kind](errand, self.owner, at)
            except (InfrastructureError, FuzzingInfrastructureError) as error:
                self._again(errand, attempts, error)
            except Exception as error:
                log.exception("internal_error", kind=errand.kind)
                self._give_up(errand, f"a bug of Assay: {type(error).__name__}: {error}")
        return True

    def _again(self, errand: Errand, attempts: int, error: Exception) -> None:
        if attempts > len(BACKOFF_S):
            self._give_up(errand, f"given up after {attempts} attempts: {error}")
            return
        until = self._clock() + timedelta(seconds=BACKOFF_S[attempts - 1])
        with self._database.transaction() as session:
            job = jobs.held(session, errand.id, self.owner, errand.turn)
            if job is not None:
                jobs.postpone(job, str(error), until)
        log.warning("job_tried_again", attempts=attempts, reason=str(error))

    def _give_up(self, errand: Errand, reason: str) -> None:
        at = self._clock()
        with self._database.transaction() as session:
            job = jobs.held(session, errand.id, self.owner, errand.turn)
            if job is not None:
                jobs.settle(job, JobState.FAILED, reason, {}, at)
        log.warning("job_failed", reason=reason)


class CheckRuns:
    """Keeps check runs true as long as the service runs."""

    name = "checks"

    def __init__(self, checks: Checks) -> None:
        self._checks = checks

    def run_forever(self, stop: threading.Event) -> None:
        """Looks every second until `stop` is set."""
        while not stop.is_set():
            try:
                self._checks.look()
            except InfrastructureError as error:
                log.warning("checks_not_told", reason=str(error))
            stop.wait(CHECKS_S)
