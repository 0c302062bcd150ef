"""The engine: claims a campaign that is due, does its present step, and deals with what goes wrong.

Any number of engines may share a database; a lease keeps two of them off one campaign. What is in memory
here may be lost at any instruction: everything is in the rows.
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
from bot.campaigns.context import LEASE, Context, Interrupted
from bot.campaigns.progress import OnProgress, log_progress
from bot.campaigns.registry import step_of
from bot.campaigns.services import Services, Settings, Trouble
from bot.store import Database, campaigns
from bot.store.campaigns import DATABASE_TROUBLE, Abandoned
from bot.store.models import Campaign, CampaignState
from fuzzing import errors as fuzzing_errors

log = structlog.get_logger(__name__)

#: Seconds to wait after the first and the second failed attempt at a step. CIFuzz builds three times too;
#: Crater's agents begin at 16 s and double.
BACKOFF_S = (15.0, 60.0)
#: How long an idle engine sleeps when nobody wakes it: back-offs and other processes' rows come due.
IDLE_S = 1.0

#: Error classes that end a campaign at once, with the kind of trouble they are.
_FINAL: tuple[tuple[type[Exception], str], ...] = (
    (errors.UsageError, "configuration"),
    (fuzzing_errors.UsageError, "configuration"),
    (errors.RefusalError, "refusal"),
    (fuzzing_errors.RefusalError, "refusal"),
)
#: Error classes after which the step is tried again.
_RETRIED: tuple[type[Exception], ...] = (
    errors.InfrastructureError,
    fuzzing_errors.InfrastructureError,
    *DATABASE_TROUBLE,
)
_EXPECTED = (*_RETRIED, *(kind for kind, _ in _FINAL))

OnFailure = Callable[[int, Exception], None]


class Engine:
    """Does one step of one campaign at a time.

    on_progress  is told how far a step is, on the engine's thread
    on_failure   is told what ended a campaign, after the row says so
    backoff      seconds after each failed attempt but the last
    """

    def __init__(
        self,
        database: Database,
        settings: Settings,
        services: Services,
        *,
        on_progress: OnProgress = log_progress,
        on_failure: OnFailure | None = None,
        backoff: Sequence[float] = BACKOFF_S,
    ) -> None:
        self._database, self._settings, self._services = database, settings, services
        self._on_progress, self._on_failure = on_progress, on_failure
        self._backoff = tuple(backoff)
        self._wake = threading.Event()
        # 64 characters at most; two engines of one process differ in the last part.
        self.owner = f"{socket.gethostname()[:32]}:{os.getpid()}:{uuid.uuid4().hex[:12]}"

    def start(self, *, steal: bool = False) -> None:
        """Call once, before any engine of the process works.

        `steal` frees the leases of everybody else at once, for a process that holds the lock on its data
        folder and so knows their owners to be dead. Without it their leases run out in a minute.
        """
        if steal:
            with self._database.transaction() as session:
                freed = campaigns.free_others(session, [self.owner])
            log.info("leases_freed", count=freed)

    def wake(self) -> None:
        """Makes an idle engine look again at once; from any thread."""
        self._wake.set()

    def run_forever(self, stop: threading.Event) -> None:
        """Works until `stop` is set; a step at work then ends within a second and is done again later."""
        while not stop.is_set():
            self._wake.clear()
            try:
                worked = self.run_once(stop)
            except _RETRIED:  # what a step suffers is dealt with there; this is the database itself
                log.exception("database_trouble", advice="check ASSAY_DATABASE_URL and the disk")
                worked = False
            if not worked:
                self._wake.wait(IDLE_S)

    def run_once(self, stop: threading.Event | None = None) -> bool:
        """Does the present step of the oldest campaign that is due; False if none is."""
        present = self._services.clock.now()
        with self._database.reading() as session:
            if not campaigns.any_due(session, present):
                return False
        with self._database.transaction(durable=False) as session:
            campaign = campaigns.claim(session, self.owner, present, present + LEASE)
        if campaign is None:
            return False
        with bound_contextvars(campaign_id=campaign.id, delivery_id=campaign.delivery):
            self._do(self._context(campaign, stop or threading.Event()))
        return True

    def _context(self, campaign: Campaign, stop: threading.Event) -> Context:
        return Context(
            database=self._database,
            settings=self._settings,
            services=self._services,
            step=step_of(CampaignState(campaign.state)),
            campaign_id=campaign.id,
            owner=self.owner,
            stop=stop,
            on_progress=self._on_progress,
            last_attempt=campaign.attempts >= len(self._backoff),
        )

    def _do(self, context: Context) -> None:
        state = context.step.state.value
        started = self._services.clock.monotonic()
        log.info("step_started", state=state)
        try:
            context.step.work(context)
        except Abandoned:
            log.info("step_abandoned", state=state)
        except (Interrupted, KeyboardInterrupt, SystemExit) as signal:
            with self._database.transaction() as session:
                campaigns.release(session, context.campaign_id, self.owner)
            log.info("step_interrupted", state=state)
            if not isinstance(signal, Interrupted):
                raise
        except _EXPECTED as error:
            self._settle(context, error)
        except Exception as error:
            log.exception("internal_error", state=state)
            self._bury(context, error)
        else:
            log.info("step_done", state=state, seconds=round(self._services.clock.monotonic() - started, 3))

    def _settle(self, context: Context, error: Exception) -> None:
        """Writes down what went wrong; our own bugs in doing so end the campaign, not the engine."""
        try:
            self._record(context, error)
        except Abandoned:
            log.info("step_abandoned", state=context.step.state.value, error=str(error))
        except _RETRIED:
            raise  # nothing can be written; the lease runs out and the step is done again
        except Exception as bug:
            log.exception("internal_error", state=context.step.state.value)
            self._bury(context, bug)

    def _record(self, context: Context, error: Exception) -> None:
        state = context.step.state.value
        kind = next((kind for classes, kind in _FINAL if isinstance(error, classes)), "infrastructure")
        passing = kind == "infrastructure" and getattr(error, "passing", True)
        if passing and not context.last_attempt:
            self._postpone(context, error)
            return
        log.warning("campaign_failed", state=state, kind=kind, error=str(error))
        times = len(self._backoff) + 1
        again = f"{state} failed {times} times: " if passing and times > 1 else ""
        self._end(context, kind, f"{again}{error}")
        self._tell(context, error)

    def _bury(self, context: Context, bug: Exception) -> None:
        """Fails the campaign for a bug of ours, already logged; GitHub is told nothing about it."""
        reason = (
            f"internal error in {context.step.state.value}: {type(bug).__name__}; "
            "this is a bug of Assay: its log has the traceback, please report it"
        )
        try:
            with context.transaction() as (_, campaign):
                campaigns.move(campaign, CampaignState.FAILED, self._services.clock.now(), reason)
        except Abandoned:
            return
        self._tell(context, bug)

    def _tell(self, context: Context, error: Exception) -> None:
        if self._on_failure is not None:
            self._on_failure(context.campaign_id, error)

    def _postpone(self, context: Context, error: Exception) -> None:
        with context.transaction() as (_, campaign):
            wait = self._backoff[campaign.attempts]
            campaigns.postpone(campaign, self._services.clock.now() + timedelta(seconds=wait))
        log.warning("step_failed", state=context.step.state.value, retry_in_s=wait, error=str(error))

    def _end(self, context: Context, kind: str, reason: str) -> None:
        """Fails the campaign, and says so in one neutral check run, in one transaction."""
        with context.transaction() as (session, campaign):
            trouble = Trouble(
                campaign_id=campaign.id,
                target=campaign.target,
                head=campaign.head,
                ref=campaign.ref,
                trigger=campaign.trigger,
                kind=kind,
                reason=reason,
            )
            self._services.reports.could_not_test(session, trouble)
            campaigns.move(campaign, CampaignState.FAILED, self._services.clock.now(), reason)
