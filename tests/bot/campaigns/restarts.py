"""A campaign in whose middle something that it needs goes away and comes back."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from bot.campaigns.campaign_queue import CampaignQueue
from bot.campaigns.intents import handle
from bot.errors import InfrastructureError
from bot.leases import LEASE
from bot.store import Database, campaigns
from bot.store.models import CampaignState
from bot.worker import Worker
from tests.bot.campaigns import fakes
from tests.bot.campaigns.killing import World
from tests.support.crash_points import Rows, make_tables, rows


def run_campaign(world: World, url: str, failures: int) -> Rows:
    """The rows of the world's campaign, which may fail so often before it has ended."""
    make_tables(url)
    clock, database = fakes.ManualClock(), Database(url)
    with database.transaction() as session:
        campaign = handle(session, fakes.Intent()).id
    services = replace(world.services, clock=clock)
    worker = Worker(CampaignQueue(database, world.settings, services, backoff=(0.0,) * (failures + 1)))
    for _ in range(200):
        with suppress(InfrastructureError):  # as `bot.loop` does
            if not worker.run_once():
                with database.reading() as session:
                    if campaigns.get(session, campaign).state is CampaignState.DONE:
                        break
                clock.advance(LEASE.total_seconds() + 1)
    database.close()
    return rows(url)
