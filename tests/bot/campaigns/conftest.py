from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bot.campaigns.campaign_queue import CampaignQueue
from bot.campaigns.intents import handle
from bot.campaigns.progress import Progress
from bot.campaigns.services import Services
from bot.store import Database, campaigns
from bot.store.models import Base, Campaign
from bot.worker import Worker
from tests.bot.campaigns import fakes


class World:
    """A database, stand-ins, and one engine over them."""

    def __init__(self, folder: Path, **replaced: Any) -> None:
        self.clock = fakes.ManualClock()
        self.runner = fakes.Runner(self.clock)
        self.tools = fakes.Tools(self.clock)
        self.reports = fakes.Reports()
        self.repositories = fakes.Repositories()
        self.settings = fakes.PlainSettings(folder)
        fakes.write_corpus(folder / "corpus")
        self.database = Database(f"sqlite:///{folder}/assay.db")
        Base.metadata.create_all(self.database.engine)
        self.progress: list[Progress] = []
        self.failures: list[Exception] = []
        self.use(**replaced)

    def use(self, **replaced: Any) -> None:
        """Puts these services in place, with a fresh engine."""
        given: dict[str, Any] = {
            "clock": self.clock,
            "runner": self.runner,
            "run_tool": self.tools,
            "reports": self.reports,
            "repositories": self.repositories,
        }
        self.services: Services = fakes.services(**(given | replaced))
        self.engine = self.another_engine()

    def another_engine(self) -> Worker:
        return Worker(
            CampaignQueue(
                self.database,
                self.settings,
                self.services,
                on_progress=self.progress.append,
                on_failure=lambda _, error: self.failures.append(error),
            )
        )

    def push(self, **fields: Any) -> int:
        """Creates a campaign as a push would; returns its id."""
        with self.database.transaction() as session:
            return handle(session, fakes.Intent(**fields)).id

    def run(self, limit: int = 100) -> None:
        """Works until nothing is due."""
        for _ in range(limit):
            if not self.engine.run_once():
                return
        raise AssertionError(f"still at work after {limit} steps")

    def campaign(self, campaign_id: int) -> Campaign:
        with self.database.reading() as session:
            return campaigns.get(session, campaign_id)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.database.close()
