"""What a step works with: its campaign, under a lease that is renewed while it works."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from bot.campaigns.progress import OnProgress, Progress
from bot.campaigns.registry import Step
from bot.campaigns.services import Config, Services, Settings
from bot.errors import InternalError
from bot.store import Database, campaigns
from bot.store.campaigns import Abandoned, Session
from bot.store.models import Campaign, CampaignState

#: A lease lives 60 s and is renewed every 15 s: three renewals may fail before another process takes
#: the campaign, as Crater's agents are missed after five heartbeats.
LEASE = timedelta(seconds=60)
RENEW_S = 15.0
#: How often a working step looks whether it was superseded; a quarter of the second allowed for that.
LOOK_S = 0.25


class Interrupted(Exception):  # noqa: N818  (a signal for the engine, not a failure)
    """The process is shutting down; the step will be done again from its rows."""


@dataclass
class Context:
    """One step's view of the world.

    last_attempt  whether infrastructure trouble now would end the campaign
    """

    database: Database
    settings: Settings
    services: Services
    step: Step
    campaign_id: int
    owner: str
    stop: threading.Event
    on_progress: OnProgress
    last_attempt: bool
    _began: float = field(default=0.0, init=False)
    _looked: float = field(default=0.0, init=False)
    _renewed: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self._began = self._looked = self._renewed = self.services.clock.monotonic()

    @property
    def corpus(self) -> Path:
        """The folder of the corpus."""
        return self.services.corpus or self.settings.data_dir / "corpus"

    @contextmanager
    def transaction(self) -> Iterator[tuple[Session, Campaign]]:
        """A transaction over the campaign, locked; raises Abandoned if it is no longer ours."""
        with self.database.transaction(durable=False) as session:
            yield session, campaigns.held(session, self.campaign_id, self.owner)

    @contextmanager
    def reading(self) -> Iterator[tuple[Session, Campaign]]:
        """A snapshot to read from, with the campaign."""
        with self.database.reading() as session:
            yield session, campaigns.get(session, self.campaign_id)

    def config(self, campaign: Campaign) -> Config:
        """The configuration in force."""
        return self.services.restore_config(campaign.config)

    def move(self, campaign: Campaign, state: CampaignState, reason: str | None = None) -> None:
        """Ends the step: the last thing it does in its last transaction."""
        if state not in self.step.to:
            raise InternalError(f"{self.step.state.value} does not lead to {state.value}")
        if self.step.state.value not in campaign.clock:  # steps that run shards charge them as they go
            elapsed = self.services.clock.monotonic() - self._began
            campaigns.spend(campaign, self.step.state.value, elapsed)
        campaigns.move(campaign, state, self.services.clock.now(), reason)

    def progress(self, done: int, total: int, note: str) -> None:
        """Tells whoever watches."""
        self.on_progress(Progress(self.campaign_id, self.step.state, done, total, note))

    def look(self) -> None:
        """Renews the lease when it is time; raises Abandoned or Interrupted if the step must end now."""
        if self.stop.is_set():
            raise Interrupted
        present = self.services.clock.monotonic()
        if present - self._looked < LOOK_S:
            return
        self._looked = present
        if present - self._renewed >= RENEW_S:
            self.renew()
            return
        with self.database.reading() as session:
            if not campaigns.still_held(session, self.campaign_id, self.owner):
                raise Abandoned(self.campaign_id)

    def renew(self) -> None:
        """Pushes the end of the lease out; raises Abandoned if it is lost."""
        with self.transaction() as (_, campaign):
            campaign.lease_until = self.services.clock.now() + LEASE
        self._renewed = self.services.clock.monotonic()
