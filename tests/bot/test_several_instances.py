"""Several processes on one PostgreSQL database: each campaign, delivery and duty is done by one of them."""

from __future__ import annotations

import json
import threading
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import func, inspect, select

from bot.artifacts import Artifacts
from bot.background import BackgroundWork, ServiceParts
from bot.campaigns import intents
from bot.service import Service
from bot.settings import Settings
from bot.store import Database, Session, campaigns, inbox, now
from bot.store.models import Base, Campaign, CampaignState, Delivery, Effect
from bot.store.schema import migrations
from bot.targets.dependencies import Dependencies
from bot.targets.event_filter import EventFilter
from bot.targets.periodic_tasks import PeriodicTask, TaskContext, TaskResult
from bot.targets.task_queue import TaskQueue
from bot.webhooks.intents import CampaignIntent, Intent
from bot.worker import Worker
from tests.bot.campaigns.conftest import World as Campaigns
from tests.support.live_service import wait_for

INSTANCES = 2


def test_migrations_make_the_models_tables_there_and_back(shared: Database) -> None:
    with shared.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []
    config = migrations()
    config.attributes["connection"] = shared.engine
    command.downgrade(config, "base")
    assert inspect(shared.engine).get_table_names() == ["alembic_version"]
    shared.migrate()
    assert shared.is_migrated()


def test_new_rows_are_counted_and_readers_keep_their_snapshot(shared: Database) -> None:
    rows = [{"id": f"d{n}", "event": "push", "payload": b"", "received_at": now()} for n in range(1200)]
    with shared.reading() as reader:
        count = select(func.count()).select_from(Delivery)
        assert reader.scalar(count) == 0
        with shared.transaction() as session:
            assert campaigns.insert_missing(session, Delivery, rows[:700]) == 700
            assert campaigns.insert_missing(session, Delivery, rows) == 500
        assert reader.scalar(count) == 0
    with shared.reading() as reader:
        assert reader.scalar(count) == 1200


def test_two_engines_do_each_campaign_once(shared: Database, tmp_path: Path) -> None:
    world = Campaigns(tmp_path)
    world.database.close()
    world.database = shared
    world.use()
    world.reports.published.clear()
    numbers = [world.push(trigger=f"pull_request:{n}", delivery=f"d{n}") for n in range(1, 6)]
    engines = [world.another_engine() for _ in range(INSTANCES)]
    working = [threading.Thread(target=_work, args=(engine, world)) for engine in engines]
    for thread in working:
        thread.start()
    for thread in working:
        thread.join(600)
    ends = [world.campaign(number) for number in numbers]
    assert [(one.state, one.reason) for one in ends] == [("done", "")] * 5
    assert Counter(summary.campaign_id for summary in world.reports.published) == dict.fromkeys(numbers, 1)
    with shared.reading() as session:
        checks = session.scalars(select(Effect.campaign_id).where(Effect.kind == "check_run")).all()
    assert Counter(checks) == dict.fromkeys(numbers, 1)


def _work(engine: Any, world: Campaigns) -> None:
    """Works until every campaign has ended, whoever ends it."""
    unfinished = [state.value for state in CampaignState if not state.ended]
    query = select(func.count()).select_from(Campaign).where(Campaign.state.in_(unfinished))
    idle = threading.Event()
    while True:
        if not engine.run_once():
            with world.database.reading() as session:
                if session.scalar(query) == 0:
                    return
            idle.wait(0.05)  # the other one is at work


class Instance:
    """A service of which everything is real but the testing itself."""

    def __init__(self, folder: Path, url: str, did: list[str], handled: list[str]) -> None:
        def handle(session: Session, intent: Intent) -> object:
            assert isinstance(intent, CampaignIntent)
            handled.append(intent.delivery)
            return intents.handle(session, intent)

        def compose(settings: Settings, database: Database) -> ServiceParts:
            event_filter = EventFilter(handle)
            dependencies = Dependencies(
                database=database,
                handle_intent=event_filter,
                start=handle,
                load_config=lambda *_: None,
                data_dir=settings.data_dir,
                artifacts=Artifacts("", settings.data_dir),
            )
            tasks = TaskQueue(
                dependencies, [PeriodicTask(name, timedelta(days=1), note(name)) for name in ("a", "b", "c")]
            )
            return ServiceParts(handle=event_filter, backgrounds=(Worker(tasks),))

        def note(name: str) -> Any:
            def run(_work: TaskContext) -> TaskResult:
                did.append(name)
                return TaskResult("done")

            return run

        settings = Settings(data_dir=folder, database_url=url, webhook_secret="s")
        self.service = Service(settings, BackgroundWork(compose))


def push(number: int) -> bytes:
    """A push to a branch of its own, or one of four pushes to the same branch."""
    return json.dumps(
        {
            "ref": f"refs/heads/{number % 10}",
            "before": f"{number + 1:040x}",
            "after": f"{number + 11:040x}",
            "repository": {"id": 7, "full_name": "octo-org/compiler", "pushed_at": 1_760_000_000 + number},
        }
    ).encode()


def test_two_services_share_one_database(postgresql: str, tmp_path: Path) -> None:
    did: list[str] = []
    handled: list[str] = []
    instances = [Instance(tmp_path / str(n), postgresql, did, handled) for n in range(INSTANCES)]
    for one in instances:  # Alembic is for one thread of a process at a time
        one.service.open()
    try:
        assert [one.service.problems() for one in instances] == [{}, {}]
        database = instances[0].service.database
        assert database is not None
        with database.transaction() as session:
            for number in range(40):
                arrival = inbox.ReceivedDelivery(f"d{number:02}", "push", push(number), now())
                inbox.store(session, [arrival])
        wait_for(lambda: not _pending(database), "both readers")
        wait_for(lambda: len(did) >= 3, "the duties")
        with database.reading() as session:
            rows = {row.id: (row.state, row.reason) for row in session.scalars(select(Delivery))}
            made = session.execute(select(Campaign.ref, Campaign.head, Campaign.state)).all()
    finally:
        for one in instances:
            one.service.close()
    assert sorted(did) == ["a", "b", "c"], "one leader for each duty"
    assert {state for state, _ in rows.values()} <= {"done", "ignored"}, rows
    assert len({(ref, head) for ref, head, _ in made}) == len(made)
    live = sorted(ref for ref, _, state in made if state == "planning")
    assert live == sorted(f"refs/heads/{n}" for n in range(10)), "one live campaign for each branch"
    assert Counter(handled).most_common(1)[0][1] == 1, "each delivery is carried out by one of the two"


def _pending(database: Database) -> int:
    with database.reading() as session:
        return inbox.backlog(session)[0]
