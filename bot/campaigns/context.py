"""The context of a step: its campaign, under a lease that is renewed while it works."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bot.campaigns.progress import OnProgress, Progress
from bot.campaigns.services import Config, Services, Settings
from bot.errors import InternalError
from bot.leases import LEASE, Lease, LeaseLost
from bot.store import Database, campaigns
from bot.store.campaigns import Session
from bot.store.models import Campaign, CampaignState


@dataclass(frozen=True)
class Step:
    """The work of one state, and the states it may lead to."""

    state: CampaignState
    to: tuple[CampaignState, ...]
    work: Callable[[Context], None]


@dataclass
class Context:
    """Database, services and lease of one step.

    stop       set when the process shuts down: the step ends, and is done again later
    end_early  set when the campaign is to end with what it has, as if its budget were spent
    """

    database: Database
    settings: Settings
    services: Services
    step: Step
    campaign_id: int
    owner: str
    stop: threading.Event
    on_progress: OnProgress
    end_early: threading.Event = field(default_factory=threading.Event)
    _began: float = field(init=False)
    _lease: Lease = field(init=False)

    def __post_init__(self) -> None:
        monotonic = self.services.clock.monotonic
        self._began = monotonic()
        self._lease = Lease(self.stop, self._renew, self._check, monotonic=monotonic)

    @property
    def corpus(self) -> Path:
        """The folder of the corpus."""
        return self.services.corpus or self.settings.data_dir / "corpus"

    @contextmanager
    def transaction(self) -> Iterator[tuple[Session, Campaign]]:
        """A transaction with the campaign locked; raises LeaseLost if another process holds it."""
        with self.database.transaction(durable=False) as session:
            yield session, campaigns.lock_held(session, self.campaign_id, self.owner)

    @contextmanager
    def reading(self) -> Iterator[tuple[Session, Campaign]]:
        """A read-only snapshot, with the campaign."""
        with self.database.reading() as session:
            yield session, campaigns.get(session, self.campaign_id)

    def config(self, campaign: Campaign) -> Config:
        """The configuration in force."""
        return self.services.restore_config(campaign.config)

    def move(self, campaign: Campaign, state: CampaignState, reason: str | None = None) -> None:
        """Sets the next state; the last write of the step's last transaction."""
        if state not in self.step.to:
            raise InternalError(f"{self.step.state.value} does not lead to {state.value}")
        if self.step.state.value not in campaign.clock:  # steps that run shards charge them as they go
            elapsed = self.services.clock.monotonic() - self._began
            campaigns.add_seconds(campaign, self.step.state.value, elapsed)
        campaigns.move(campaign, state, self.services.clock.now(), reason)

    def progress(self, done: int, total: int, note: str, *, state: str = "", lasting: bool = False) -> None:
        """Reports progress in cases or runs; total 0 if unknown.

        state    the state that the work is charged to, if that is another one
        lasting  whether the note is a result, which stays true
        """
        at = CampaignState(state) if state else self.step.state
        self.on_progress(Progress(self.campaign_id, at, done, total, note, lasting))

    def heartbeat(self) -> None:
        """Renews the lease when due; raises LeaseLost or Interrupted if the step must end."""
        self._lease.heartbeat()

    def _check(self) -> None:
        with self.database.reading() as session:
            if not campaigns.is_held(session, self.campaign_id, self.owner):
                raise LeaseLost(self.campaign_id)

    def _renew(self) -> None:
        with self.transaction() as (_, campaign):
            campaign.lease_until = self.services.clock.now() + LEASE
