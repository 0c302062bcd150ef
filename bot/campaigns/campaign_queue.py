"""The queue of campaigns: a due campaign runs one step.

Any number of workers may share a database; a lease keeps two of them off one campaign.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import structlog

from bot.campaigns.context import Context
from bot.campaigns.progress import OnProgress, log_progress
from bot.campaigns.registry import get_step
from bot.campaigns.services import CampaignProblem, Services, Settings
from bot.errors import InfrastructureError, RefusalError, UsageError
from bot.leases import LEASE
from bot.store import Database, campaigns
from bot.store.models import Campaign, CampaignState
from bot.worker import Queue, claim_row

log = structlog.get_logger(__name__)

#: Seconds to wait after the first and the second failed attempt at a step. CIFuzz builds three times too;
#: Crater's agents begin at 16 s and double.
BACKOFF_S = (15.0, 60.0)
#: Seconds an idle worker sleeps unless woken: back-offs end, other processes add rows.
IDLE_S = 1.0

OnFailure = Callable[[int, Exception], None]


class CampaignQueue(Queue):
    """Unfinished campaigns, one step at a time.

    on_progress  called with progress, on the worker's thread
    on_failure   called with what ended a campaign, after its row is written
    end_early    see `Context`
    """

    name = "campaigns"

    def __init__(
        self,
        database: Database,
        settings: Settings,
        services: Services,
        *,
        on_progress: OnProgress = log_progress,
        on_failure: OnFailure | None = None,
        backoff: Sequence[float] = BACKOFF_S,
        name: str = name,
        end_early: threading.Event | None = None,
    ) -> None:
        self.name = name
        self.idle_s, self.backoff = IDLE_S, tuple(backoff)
        self._database, self._settings, self._services = database, settings, services
        self._on_progress, self._on_failure = on_progress, on_failure
        self._end_early = end_early or threading.Event()

    def release_other_leases(self, owner: str) -> None:
        """Frees the leases of all other owners."""
        with self._database.transaction() as session:
            freed = campaigns.release_other_leases(session, [owner])
        log.info("leases.released", count=freed)

    def claim(self, owner: str, stop: threading.Event) -> Iterator[_StepRun]:
        """The step of the oldest campaign that is due."""
        at = self._services.clock.now()
        campaign = claim_row(
            self._database,
            lambda session: campaigns.any_due(session, at),
            lambda session: campaigns.claim(session, owner, at, at + LEASE),
        )
        if campaign is not None:
            context = self._context(campaign, owner, stop)
            yield _StepRun(context, campaign.delivery, campaign.attempts + 1, self._on_failure)

    def _context(self, campaign: Campaign, owner: str, stop: threading.Event) -> Context:
        return Context(
            database=self._database,
            settings=self._settings,
            services=self._services,
            step=get_step(CampaignState(campaign.state)),
            campaign_id=campaign.id,
            owner=owner,
            stop=stop,
            on_progress=self._on_progress,
            end_early=self._end_early,
        )


@dataclass(frozen=True)
class _StepRun:
    """An attempt at a step of a campaign."""

    context: Context
    delivery: str | None
    attempt: int
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

    def postpone(self, error: Exception, seconds: float) -> None:
        del error  # it may pass
        with self.context.transaction() as (_, campaign):
            campaigns.postpone(campaign, self.context.services.clock.now() + timedelta(seconds=seconds))

    def fail(self, error: Exception) -> None:
        """Fails the campaign and posts a neutral check run, in one transaction."""
        transient = isinstance(error, InfrastructureError) and error.transient
        again = f"{self.state} failed {self.attempt} times: " if transient and self.attempt > 1 else ""
        reason, services = f"{again}{error}", self.context.services
        with self.context.transaction() as (session, campaign):
            problem = CampaignProblem(
                campaign_id=campaign.id,
                target=campaign.target,
                head=campaign.head,
                ref=campaign.ref,
                trigger=campaign.trigger,
                kind=_problem_kind(error),
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
