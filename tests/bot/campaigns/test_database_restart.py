"""PostgreSQL is killed and started again in the middle of a campaign."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from bot.campaigns.campaign_queue import CampaignQueue
from bot.campaigns.intents import handle
from bot.errors import InfrastructureError
from bot.leases import LEASE
from bot.store import Database, campaigns
from bot.store.models import CampaignState
from bot.worker import Worker
from tests.bot.campaigns import fakes
from tests.bot.campaigns.killing import standin_world
from tests.support import postgres
from tests.support.crash_points import Rows, make_tables, rows

#: The runs of cases before which the server is killed: cases at head, their repeats, and those at base.
KILLED_AT = (3, 11, 19, 27, 40)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(postgres.missing()), reason=postgres.missing() or "PostgreSQL is there"),
]


def run_campaign(folder: Path, server: postgres.Server, killed_at: tuple[int, ...]) -> tuple[Rows, int]:
    """The rows of a finished campaign, and how often the server was killed."""
    folder.mkdir()
    world, clock, seen, killed = standin_world(folder), fakes.ManualClock(), 0, 0

    def before_run() -> None:
        nonlocal seen, killed
        seen += 1
        if seen in killed_at:
            killed += 1
            server.restart()

    world.before_run(before_run)
    make_tables(url := server.database(str(folder)))
    database = Database(url)
    with database.transaction() as session:
        campaign = handle(session, fakes.Intent()).id
    backoff = (0.0,) * (len(killed_at) + 1)
    services = replace(world.services, clock=clock)
    worker = Worker(CampaignQueue(database, world.settings, services, backoff=backoff))
    for _ in range(200):
        with suppress(InfrastructureError):  # as `bot.loop` does
            if not worker.run_once():
                with database.reading() as session:
                    if campaigns.get(session, campaign).state is CampaignState.DONE:
                        break
                clock.advance(LEASE.total_seconds() + 1)
    database.close()
    return rows(url), killed


def test_a_restart_of_the_database_loses_and_repeats_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.campaigns.run.shards.BATCH", 4)
    with postgres.serving() as server:
        calm, _ = run_campaign(tmp_path / "calm", server, ())
        disturbed, killed = run_campaign(tmp_path / "disturbed", server, KILLED_AT)
    assert killed == len(KILLED_AT)
    assert calm["outcomes"]
    assert [one["state"] for one in disturbed["campaigns"]] == ["done"]
    assert disturbed == calm
