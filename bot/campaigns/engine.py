"""The engine: claims a campaign that is due, runs its step, handles failures.

Any number of engines may share a database; a lease keeps two of them off one campaign.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import structlog

from bot.campaigns.context import Context
from bot.campaigns.progress import OnProgress, log_progress
from bot.campaigns.registry import get_step
from bot.campaigns.services import CampaignProblem, Services, Settings
from bot.errors import InfrastructureError, RefusalError, UsageError
from bot.leases import LEASE
from bot.loop import Loop
from bot.store import Database, campaigns
from bot.store.models import Campaign, CampaignState

log = structlog.get_logger(__name__)

#: Seconds to wait after the first and the second failed attempt at a step. CIFuzz builds three times too;
#: Crater's agents begin at 16 s and double.
BACKOFF_S = (15.0, 60.0)
#: Seconds an idle engine sleeps unless woken: back-offs end, other processes add rows.
IDLE_S = 1.0

OnFailure = Callable[[int, Exception], None]


class Engine(Loop):
    """Runs one step of one campaign at a time.

    on_progress  called with progress, on the engine's thread
    on_failure   called with what ended a campaign, after its row is written
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
        super().__init__("campaigns", IDLE_S)
        self._database, self._settings, self._services = database, settings, services
        self._on_progress, self._on_failure = on_progress, on_failure
        self._backoff = tuple(backoff)

    def start(self, *, free_other_leases: bool = False) -> None:
        """Call once, before any engine of the process works.

        free_other_leases  free all leases at once: for a process that holds the lock of its data folder, so
                           other owners are dead. Otherwise leases expire in a minute.
        """
        if free_other_leases:
            with self._database.transaction() as session:
                freed = campaigns.release_other_leases(session, [self.owner])
            log.info("leases.released", count=freed)

    def run_once(self, stop: threading.Event | None = None, /) -> bool:
        """Runs the step of the oldest campaign that is due; False if none is."""
        present = self._services.clock.now()
        with self._database.reading() as session:
            if not campaigns.any_due(session, present):
                return False
        with self._database.transaction(durable=False) as session:
            campaign = campaigns.claim(session, self.owner, present, present + LEASE)
        if campaign is None:
            return False
        context = self._context(campaign, stop or threading.Event())
        self.process(_StepRun(context, campaign.delivery, campaign.attempts, self._backoff, self._on_failure))
        return True

    def _context(self, campaign: Campaign, stop: threading.Event) -> Context:
        return Context(
            database=self._database,
            settings=self._settings,
            services=self._services,
            step=get_step(CampaignState(campaign.state)),
            campaign_id=campaign.id,
            owner=self.owner,
            stop=stop,
            on_progress=self._on_progress,
        )


@dataclass(frozen=True)
class _StepRun:
    """A step of a campaign, after `attempts` failures."""

    context: Context
    delivery: str | None
    attempts: int
    backoff: Sequence[float]
    on_failure: OnFailure | None

    @property
    def state(self) -> str:
        """The campaign's state."""
        return self.context.step.state.value

    @property
    def log_fields(self) -> Mapping[str, object]:
        """Campaign, state and delivery."""
        return {"campaign_id": self.context.campaign_id, "state": self.state, "delivery_id": self.delivery}

    def work(self) -> None:
        self.context.step.work(self.context)

    def release_lease(self) -> None:
        with self.context.database.transaction() as session:
            campaigns.release_lease(session, self.context.campaign_id, self.context.owner)

    def wait(self) -> float | None:
        return self.backoff[self.attempts] if self.attempts < len(self.backoff) else None

    def postpone(self, error: Exception, seconds: float) -> None:
        del error  # it may pass
        with self.context.transaction() as (_, campaign):
            campaigns.postpone(campaign, self.context.services.clock.now() + timedelta(seconds=seconds))

    def fail(self, error: Exception) -> None:
        """Fails the campaign and posts a neutral check run, in one transaction."""
        kind = _problem_kind(error)
        transient = isinstance(error, InfrastructureError) and error.transient
        again = f"{self.state} failed {self.attempts + 1} times: " if transient and self.attempts else ""
        reason, services = f"{again}{error}", self.context.services
        with self.context.transaction() as (session, campaign):
            problem = CampaignProblem(
                campaign_id=campaign.id,
                target=campaign.target,
                head=campaign.head,
                ref=campaign.ref,
                trigger=campaign.trigger,
                kind=kind,
                reason=reason,
            )
            services.reports.publish_problem(session, problem)
            campaigns.move(campaign, CampaignState.FAILED, services.clock.now(), reason)
        self._notify_failure(error)

    def record_internal_error(self, bug: Exception) -> None:
        """Fails the campaign; nothing is posted to GitHub."""
        reason = (
            f"internal error in {self.state}: {type(bug).__name__}; "
            "this is a bug of Assay: its log has the traceback, please report it"
        )
        with self.context.transaction() as (_, campaign):
            campaigns.move(campaign, CampaignState.FAILED, self.context.services.clock.now(), reason)
        self._notify_failure(bug)

    def _notify_failure(self, error: Exception) -> None:
        if self.on_failure is not None:
            self.on_failure(self.context.campaign_id, error)


def _problem_kind(error: Exception) -> str:
    """The kind of the problem that ends a campaign."""
    if isinstance(error, UsageError):
        return "configuration"
    return "refusal" if isinstance(error, RefusalError) else "infrastructure"
