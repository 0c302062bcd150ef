"""Jobs: asked for once, done from their rows, given up with a reason, answered once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from bot.campaigns.services import Services, Settings
from bot.errors import InfrastructureError, RefusalError
from bot.jobs import registry
from bot.jobs.doing import Doing
from bot.jobs.registry import Kind, Lane
from bot.jobs.worker import PATIENCE, Worker
from bot.store import Database, audit, jobs
from bot.store.models import Base, Campaign, Effect, Job, JobState
from fuzzing.registry import Registry

TARGET = "octo/compiler"
START = datetime(2026, 11, 20, 12, tzinfo=UTC)


@dataclass
class Clock:
    """Stands still until told."""

    at: datetime = START

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.at.timestamp()


@dataclass
class World:
    """A database, a worker of the long lane, and what its one kind of job does."""

    database: Database
    clock: Clock = field(default_factory=Clock)
    work: Callable[[Doing], None] = lambda doing: None

    @property
    def worker(self) -> Worker:
        services = cast("Services", type("Few", (), {"clock": self.clock}))
        return Worker(self.database, cast("Settings", None), services, Lane.LONG, backoff=(10.0, 20.0))

    def ask(self, key: str = "k", kind: str = "planted", **fields: Any) -> None:
        with self.database.transaction() as session:
            jobs.ask(session, kind, TARGET, key, self.clock.at, **fields)

    def job(self, key: str = "k") -> Job:
        with self.database.reading() as session:
            found = jobs.of_key(session, key)
        assert found is not None
        return found

    def effects(self) -> list[Effect]:
        with self.database.reading() as session:
            return list(session.query(Effect))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    database = Database(f"sqlite:///{tmp_path}/assay.db")
    Base.metadata.create_all(database.engine)
    made = World(database)
    planted: Registry[Kind] = Registry("kind of job", "bot.jobs")
    planted.add(Kind("planted", Lane.LONG, lambda doing: made.work(doing)), "planted")
    planted.add(Kind("silent", Lane.LONG, lambda doing: made.work(doing), answers=False), "silent")
    monkeypatch.setattr(registry, "_KINDS", planted)
    yield made
    database.close()


def finish(doing: Doing) -> None:
    with doing.transaction() as (session, job):
        doing.done(session, job, "it is small now", answer="**one** operator")


def test_a_key_is_one_job_and_is_done_once(world: World) -> None:
    done: list[str] = []

    def work(doing: Doing) -> None:
        done.append(doing.errand.key)
        finish(doing)

    world.work = work
    world.ask()
    world.ask()
    assert [world.worker.run_once(), world.worker.run_once()] == [True, False]
    assert done == ["k"]
    assert (world.job().state, world.job().reason) == (JobState.DONE.value, "it is small now")


def test_whoever_asked_in_a_thread_is_answered_once(world: World) -> None:
    world.work = finish
    world.ask(asked_by="maintainer", arguments={"number": 7})
    world.worker.run_once()
    (effect,) = world.effects()
    assert (effect.kind, effect.number, effect.urgent, effect.mode) == ("comment", 7, True, "live")
    assert "`planted`: **one** operator" in effect.payload["body"]
    with world.database.reading() as session:
        (act,) = audit.of(session, TARGET, f"job:{world.job().id}")
    assert act.why == "it is small now"


def test_what_nobody_asked_for_answers_nobody(world: World) -> None:
    world.work = finish
    world.ask(arguments={"number": 7})
    world.worker.run_once()
    assert world.effects() == []


def test_our_machines_trouble_is_tried_again_and_then_given_up(world: World) -> None:
    def work(_doing: Doing) -> None:
        raise InfrastructureError("the disk is full @everyone")

    world.work = work
    world.ask(asked_by="maintainer", arguments={"number": 7})
    for wait in (10, 20):
        assert world.worker.run_once()
        assert not world.worker.run_once()
        assert world.job().state == JobState.PENDING.value
        world.clock.at += timedelta(seconds=wait)
    assert world.worker.run_once()
    assert world.job().reason == "failed 3 times: the disk is full @everyone"
    (effect,) = world.effects()
    assert "@everyone" not in effect.payload["body"]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (RefusalError("no such release"), "no such release"),
        (ValueError("secret detail"), "a bug of Assay: ValueError; its log has the traceback"),
    ],
)
def test_what_trying_again_cannot_mend_fails_at_once(world: World, error: Exception, reason: str) -> None:
    def work(_doing: Doing) -> None:
        raise error

    world.work = work
    world.ask()
    world.worker.run_once()
    assert (world.job().state, world.job().reason) == (JobState.FAILED.value, reason)


def test_a_worker_whose_lease_ran_out_writes_nothing(world: World) -> None:
    def slow(doing: Doing) -> None:
        world.clock.at += timedelta(minutes=5)
        world.work = finish
        assert world.worker.run_once()  # another worker takes it over
        with doing.transaction():
            raise AssertionError("never reached")

    world.work = slow
    world.ask(asked_by="maintainer", arguments={"number": 7})
    assert world.worker.run_once()
    assert world.job().state == JobState.DONE.value
    assert len(world.effects()) == 1


def test_set_going_again_while_at_work_it_is_done_again(world: World) -> None:
    def work(doing: Doing) -> None:
        world.work = finish
        world.ask(again=True)
        finish(doing)

    world.work = work
    world.ask()
    assert world.worker.run_once()
    assert world.job().state == JobState.PENDING.value
    assert world.worker.run_once()
    assert world.job().state == JobState.DONE.value


def test_a_shutdown_gives_the_job_back(world: World) -> None:
    stop = threading.Event()

    def work(doing: Doing) -> None:
        stop.set()
        doing.look()

    world.work = work
    world.ask()
    assert world.worker.run_once(stop)
    assert (world.job().state, world.job().attempts) == (JobState.PENDING.value, 0)


def test_a_kind_that_tells_in_a_way_of_its_own_answers_nobody(world: World) -> None:
    def work(_doing: Doing) -> None:
        raise RefusalError("no")

    world.work = work
    world.ask(kind="silent", asked_by="maintainer", arguments={"number": 7})
    world.worker.run_once()
    assert world.job().reason == "no"
    assert world.effects() == []


def test_what_a_dead_process_was_at_is_done_by_the_next(world: World) -> None:
    world.work = finish
    world.ask()
    with world.database.transaction() as session:
        until = world.clock.at + timedelta(days=1)
        assert jobs.claim(session, ["planted"], "the dead", world.clock.at, until) is not None
    worker = world.worker
    worker.start(steal=False)
    assert not worker.run_once(), "its lease is not over"
    worker.start(steal=True)
    assert worker.run_once()
    assert world.job().state == JobState.DONE.value


def test_campaigns_come_first_but_not_for_ever(world: World) -> None:
    world.work = finish
    world.ask()
    with world.database.transaction() as session:
        times = {"created_at": START, "updated_at": START}
        session.add(Campaign(target=TARGET, head="1" * 40, trigger="push", **times))
    assert not world.worker.run_once()
    world.clock.at += PATIENCE
    assert world.worker.run_once()
