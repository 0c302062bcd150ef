"""A campaign without the service: the same steps, on its own database."""

from __future__ import annotations

import threading
import uuid

from bot.campaigns.campaign_queue import CampaignQueue
from bot.campaigns.progress import OnProgress, log_progress
from bot.campaigns.services import Config, Services, Settings
from bot.errors import InternalError
from bot.store import Database, campaigns
from bot.store.models import Campaign, CampaignState
from bot.worker import Worker


def run_locally(
    database: Database,
    settings: Settings,
    services: Services,
    config: Config,
    *,
    target: str = "local",
    head: str = "installed",
    base: str = "",
    seed: int = 0,
    on_progress: OnProgress = log_progress,
    stop: threading.Event | None = None,
    end_early: threading.Event | None = None,
) -> Campaign:
    """Runs one campaign with this configuration to its end; returns its row.

    seed       of the random choices of ranking, which reports print
    end_early  ends the campaign with what it has, once set

    The database must be migrated and used by no other process. Nothing is retried. Raises what ended the
    campaign, from either error tree; returns the unfinished row if `stop` was set.
    """
    failures: list[Exception] = []
    queue = CampaignQueue(
        database,
        settings,
        services,
        on_progress=on_progress,
        on_failure=lambda _, error: failures.append(error),
        backoff=(),
        end_early=end_early,
    )
    stop = stop or threading.Event()
    with database.transaction() as session:
        campaign_id = _create(session, services, config, target, head, base, seed).id
    worker = Worker(queue)
    worker.start(free_other_leases=True)
    while not stop.is_set() and worker.run_once(stop):
        pass
    with database.reading() as session:
        campaign = campaigns.get(session, campaign_id)
    if failures:
        raise failures[0]
    if not CampaignState(campaign.state).ended and not stop.is_set():
        raise InternalError(f"the campaign stopped in {campaign.state}")
    return campaign


def _create(
    session: campaigns.Session,
    services: Services,
    config: Config,
    target: str,
    head: str,
    base: str,
    seed: int,
) -> Campaign:
    present = services.clock.now()
    row = Campaign(
        target=target,
        head=head,
        base=base,
        trigger=f"manual:{uuid.uuid4().hex[:8]}",
        state=CampaignState.PLANNING.value,
        config=config.to_json(),
        seed=seed,
        created_at=present,
        updated_at=present,
    )
    return campaigns.create(session, row)[0]
