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
from bot.commands.job_reply import post_job_reply
from bot.errors import InfrastructureError, RefusalError
from bot.jobs import registry
from bot.jobs.job_context import JobContext
from bot.jobs.job_queue import MAX_WAIT, JobQueue
from bot.jobs.registry import JobKind, Lane
from bot.store import Database, audit, jobs
from bot.store.models import Base, Campaign, Effect, Job, JobState
from bot.worker import Worker
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
    work: Callable[[JobContext], None] = lambda job_context: None

    @property
    def worker(self) -> Worker:
        services = cast("Services", type("Few", (), {"clock": self.clock}))
        return Worker(
            JobQueue(
                self.database,
                cast("Settings", None),
                services,
                Lane.LONG,
                backoff=(10.0, 20.0),
                reply=post_job_reply,
            )
        )

    def enqueue(self, key: str = "k", kind: str = "planted", **fields: Any) -> None:
        with self.database.transaction() as session:
            jobs.enqueue(session, kind, TARGET, key, self.clock.at, **fields)

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
    planted: Registry[JobKind] = Registry("kind of job", "bot.jobs")
    planted.add(JobKind("planted", Lane.LONG, lambda job_context: made.work(job_context)), "planted")
    planted.add(
        JobKind("silent", Lane.LONG, lambda job_context: made.work(job_context), answers=False), "silent"
    )
    monkeypatch.setattr(registry, "_KINDS", planted)
    yield made
    database.close()


def finish(job_context: JobContext) -> None:
    with job_context.transaction() as (session, job):
        job_context.done(session, job, "it is small now", answer="**one** operator")


def test_a_key_is_one_job_and_is_done_once(world: World) -> None:
    done: list[str] = []

    def work(job_context: JobContext) -> None:
        done.append(job_context.job_spec.key)
        finish(job_context)

    world.work = work
    world.enqueue()
    world.enqueue()
    assert [world.worker.run_once(), world.worker.run_once()] == [True, False]
    assert done == ["k"]
    assert (world.job().state, world.job().reason) == (JobState.DONE.value, "it is small now")


def test_whoever_asked_in_a_thread_is_answered_once(world: World) -> None:
    world.work = finish
    world.enqueue(requested_by="maintainer", arguments={"number": 7})
    world.worker.run_once()
    (effect,) = world.effects()
    assert (effect.kind, effect.number, effect.urgent, effect.mode) == ("comment", 7, True, "live")
    assert "`planted`: **one** operator" in effect.payload["body"]
    with world.database.reading() as session:
        (act,) = audit.of(session, TARGET, f"job:{world.job().id}")
    assert act.reason == "it is small now"


def test_what_nobody_asked_for_answers_nobody(world: World) -> None:
    world.work = finish
    world.enqueue(arguments={"number": 7})
    world.worker.run_once()
    assert world.effects() == []


def test_our_machines_trouble_is_tried_again_and_then_given_up(world: World) -> None:
    def work(_doing: JobContext) -> None:
        raise InfrastructureError("the disk is full @everyone")

    world.work = work
    world.enqueue(requested_by="maintainer", arguments={"number": 7})
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
    def work(_doing: JobContext) -> None:
        raise error

    world.work = work
    world.enqueue()
    world.worker.run_once()
    assert (world.job().state, world.job().reason) == (JobState.FAILED.value, reason)


def test_a_worker_whose_lease_ran_out_writes_nothing(world: World) -> None:
    def slow(job_context: JobContext) -> None:
        world.clock.at += timedelta(minutes=5)
        world.work = finish
        assert world.worker.run_once()  # another worker takes it over
        with job_context.transaction():
            raise AssertionError("never reached")

    world.work = slow
    world.enqueue(requested_by="maintainer", arguments={"number": 7})
    assert world.worker.run_once()
    assert world.job().state == JobState.DONE.value
    assert len(world.effects()) == 1


def test_set_going_again_while_at_work_it_is_done_again(world: World) -> None:
    def work(job_context: JobContext) -> None:
        world.work = finish
        world.enqueue(again=True)
        finish(job_context)

    world.work = work
    world.enqueue()
    assert world.worker.run_once()
    assert world.job().state == JobState.PENDING.value
    assert world.worker.run_once()
    assert world.job().state == JobState.DONE.value


def test_a_shutdown_gives_the_job_back(world: World) -> None:
    stop = threading.Event()

    def work(job_context: JobContext) -> None:
        stop.set()
        job_context.heartbeat()

    world.work = work
    world.enqueue()
    assert world.worker.run_once(stop)
    assert (world.job().state, world.job().attempts) == (JobState.PENDING.value, 0)


def test_a_kind_that_tells_in_a_way_of_its_own_answers_nobody(world: World) -> None:
    def work(_doing: JobContext) -> None:
        raise RefusalError("no")

    world.work = work
    world.enqueue(kind="silent", requested_by="maintainer", arguments={"number": 7})
    world.worker.run_once()
    assert world.job().reason == "no"
    assert world.effects() == []


def test_what_a_dead_process_was_at_is_done_by_the_next(world: World) -> None:
    world.work = finish
    world.enqueue()
    with world.database.transaction() as session:
        until = world.clock.at + timedelta(days=1)
        assert jobs.claim(session, ["planted"], "the dead", world.clock.at, until) is not None
    worker = world.worker
    worker.start(free_other_leases=False)
    assert not worker.run_once(), "its lease is not over"
    worker.start(free_other_leases=True)
    assert worker.run_once()
    assert world.job().state == JobState.DONE.value


def test_campaigns_come_first_but_not_for_ever(world: World) -> None:
    world.work = finish
    world.enqueue()
    with world.database.transaction() as session:
        times = {"created_at": START, "updated_at": START}
        session.add(Campaign(target=TARGET, head="1" * 40, trigger="push", **times))
    assert not world.worker.run_once()
    world.clock.at += MAX_WAIT
    assert world.worker.run_once()
