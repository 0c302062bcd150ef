"""Duties: one process does each; what they say is kept; bugs and failures end none of the others."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from bot.artifacts import Artifacts
from bot.config import parse_config
from bot.errors import InfrastructureError, InternalError, RefusalError
from bot.store import Database, outbox, periodic_tasks
from bot.store.models import CachedResponse, Delivery, EffectState, RateUsage, TargetState
from bot.store.models import PeriodicTask as Row
from bot.targets import policy, target_lifecycle
from bot.targets.dependencies import Dependencies
from bot.targets.periodic_tasks import PeriodicTask, TaskContext, TaskResult, contain_faults, list_tasks
from bot.targets.task_queue import LEASE
from tests.bot.targets.targets_kit import CONFIG, Clock, TargetHarness, run_tasks
from tests.github.repository_double import RepositoryDouble

HOUR = timedelta(hours=1)
NIGHTLY = CONFIG + "schedules: {nightly: {cron: '0 3 * * *', budget: 2h}}\n"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def dependencies(tmp_path: Path, clock: Clock) -> Dependencies:
    database = Database(f"sqlite:///{tmp_path}/assay.db")
    database.migrate()
    return Dependencies(
        database=database,
        handle_intent=lambda _session, _intent: None,
        start=lambda _session, _intent: None,
        load_config=lambda _target, _commit: None,
        data_dir=tmp_path,
        artifacts=Artifacts("", tmp_path),
        clock=clock,
    )


def note(dependencies: Dependencies, name: str) -> str:
    with dependencies.database.reading() as session:
        return session.get_one(Row, name).note


def test_a_duty_is_done_once_in_its_time_whoever_asks(dependencies: Dependencies, clock: Clock) -> None:
    did: list[int] = []

    def remember(work: TaskContext) -> TaskResult:
        did.append(len(work.saved_state))
        return TaskResult("done", {"n": len(did)})

    task = PeriodicTask("d", HOUR, remember)
    for _ in range(6):
        run_tasks(dependencies, [task])
    assert did == [0]
    clock.advance(minutes=61)
    for _ in range(3):
        run_tasks(dependencies, [task])
    assert did == [0, 1], "it remembers what it left"


def test_several_threads_take_a_duty_once(dependencies: Dependencies) -> None:
    did: list[str] = []
    barrier = threading.Barrier(6)

    def count(_work: TaskContext) -> TaskResult:
        did.append("x")
        return TaskResult("done")

    task = PeriodicTask("d", HOUR, count)

    def keep() -> None:
        barrier.wait(600)
        run_tasks(dependencies, [task])

    threads = [threading.Thread(target=keep) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(600)
    assert did == ["x"]


def test_the_duty_of_a_process_that_died_is_taken_over_after_its_lease(
    dependencies: Dependencies, clock: Clock
) -> None:
    with dependencies.database.transaction() as session:
        assert periodic_tasks.claim(session, "d", "dead", clock(), HOUR, LEASE) is not None
    task = PeriodicTask("d", HOUR, lambda _work: TaskResult("done"))
    assert run_tasks(dependencies, [task]) == []
    clock.now += LEASE
    assert run_tasks(dependencies, [task]) == ["d"]


def test_a_long_duty_keeps_its_lease_and_ends_where_it_was_lost(
    dependencies: Dependencies, clock: Clock
) -> None:
    reached: list[str] = []

    def long(work: TaskContext) -> TaskResult:
        for _ in range(5):
            clock.now += LEASE / 2
            work.heartbeat()
        reached.append("kept")
        with dependencies.database.transaction() as session:
            session.get_one(Row, "long").owner = "another"
        clock.now += LEASE / 2
        work.heartbeat()
        reached.append("lost")
        return TaskResult("never")

    run_tasks(dependencies, [PeriodicTask("long", HOUR, long)])
    assert reached == ["kept"]
    assert note(dependencies, "long") == ""


@pytest.mark.parametrize(
    ("error", "said", "level"),
    [
        (InfrastructureError("GitHub is down"), "failed: GitHub is down", "warning"),
        (InternalError("oh"), "a bug of Assay: InternalError: oh", "error"),
        (ZeroDivisionError("oh"), "a bug of Assay: ZeroDivisionError: oh", "error"),
    ],
)
def test_what_fails_is_told_and_the_others_are_done(
    dependencies: Dependencies, error: Exception, said: str, level: str
) -> None:
    def fail(_work: TaskContext) -> TaskResult:
        raise error

    with capture_logs() as logs:
        had = run_tasks(
            dependencies,
            [PeriodicTask("a", HOUR, fail), PeriodicTask("b", HOUR, lambda _work: TaskResult("done"))],
        )
    assert had == ["a", "b"]
    assert (note(dependencies, "a"), note(dependencies, "b")) == (said, "done")
    assert level in [line["log_level"] for line in logs]


@pytest.mark.parametrize(
    ("error", "level"),
    [
        (RefusalError("the App is suspended there"), "warning"),
        (InfrastructureError("GitHub is down"), "warning"),
        (InternalError("oh"), "error"),
        (ZeroDivisionError("oh"), "error"),
    ],
)
def test_a_fault_of_one_item_is_logged_by_who_must_act(error: Exception, level: str) -> None:
    def fail() -> None:
        raise error

    told: list[Exception] = []
    with capture_logs() as logs, contain_faults("octo/compiler", told.append):
        fail()
    assert told == [error]
    assert [(line["event"], line["log_level"]) for line in logs] == [("item.failed", level)]


def test_a_shutdown_leaves_the_duty_for_the_next_process(dependencies: Dependencies) -> None:
    stop = threading.Event()

    def work_on(work: TaskContext) -> TaskResult:
        stop.set()
        work.heartbeat()
        return TaskResult("never")

    assert run_tasks(dependencies, [PeriodicTask("d", HOUR, work_on)], stop) == ["d"]
    done = PeriodicTask("d", HOUR, lambda _work: TaskResult("done"))
    assert run_tasks(dependencies, [done]) == ["d"]


def test_without_github_only_what_needs_none_is_done(dependencies: Dependencies) -> None:
    did = set(run_tasks(dependencies))
    assert did == {task.name for task in list_tasks() if not task.needs_github}
    assert did >= {"retention", "schedules", "cleanup"}
    assert did.isdisjoint({"installations", "reconciliation", "redelivery"})


def test_deliveries_that_failed_are_asked_for_again_once_each(
    watch: TargetHarness, repository: RepositoryDouble
) -> None:
    watch.hub.mischief(drop=1.0)
    for number in range(3):
        repository.commit({"op.cc": f"{number}\n"})
    watch.hub.mischief()
    watch.clock.advance(minutes=10)
    lost = [one.guid for one in watch.hub.deliveries.log if one.event == "push" and one.status != "pending"]
    assert watch.do("redelivery")["redelivery"].startswith(
        f"{len(watch.hub.deliveries)} deliveries requested"
    )
    again = [one for one in watch.hub.deliveries.log if one.redelivery]
    assert {one.guid for one in again} >= set(lost[-3:])
    assert len({one.guid for one in again}) == len(again)
    assert watch.deliver() > 0
    watch.clock.advance(minutes=70)
    assert watch.do("redelivery")["redelivery"] == "0 deliveries requested again", "they are in our inbox"
    assert watch.campaigns()[-1].head == repository.head()


def test_a_delivery_that_is_refused_each_time_is_given_up_and_only_the_last_are_looked_at_again(
    watch: TargetHarness, repository: RepositoryDouble
) -> None:
    repository.commit({"op.cc": "refused\n"})
    refused = watch.hub.deliveries.pop("push")
    watch.drop()
    for delivery in watch.hub.deliveries.log:
        delivery.status, delivery.status_code = "OK", 202
    refused.status, refused.status_code = "Invalid HTTP Response: 503", 503
    notes = []
    for _ in range(7):
        watch.clock.advance(minutes=61)
        notes.append(watch.do("redelivery")["redelivery"])
        while len(watch.hub.deliveries):
            again = watch.hub.deliveries.pop()
            again.status, again.status_code = "Invalid HTTP Response: 503", 503
    assert notes[:5] == ["1 deliveries requested again"] * 5
    assert notes[5] == "0 deliveries requested again, 1 given up after 6 attempts"
    with watch.database.reading() as session:
        since = datetime.fromisoformat(session.get_one(Row, "redelivery").saved_state["since"])
    assert since == watch.clock() - timedelta(hours=2)


def test_schedules_start_campaigns_and_missed_times_run_once(
    watch: TargetHarness, repository: RepositoryDouble
) -> None:
    first = repository.commit({".github/assay.yml": NIGHTLY})
    watch.deliver()
    watch.clock.advance(minutes=20)
    watch.do("reconciliation")

    def nightly() -> list[tuple[str, str, str]]:
        return [
            (one.head, one.base, one.state) for one in watch.campaigns() if one.trigger == "schedule:nightly"
        ]

    watch.do("schedules")
    assert nightly() == [], "its time has not come"
    watch.clock.advance(days=4)
    watch.do("schedules")
    watch.do("schedules")
    assert nightly() == [(first, "", "planning")], "four missed nights are one campaign"
    assert [one.overrides for one in watch.campaigns()][-1] == {"budget": 7200.0}
    assert watch.target().schedules[0]["next"] == policy.next_time("0 3 * * *", watch.clock())


def test_the_next_night_is_compared_with_the_last_and_skipped_if_nothing_changed(
    watch: TargetHarness, repository: RepositoryDouble
) -> None:
    first = repository.commit({".github/assay.yml": NIGHTLY})
    watch.deliver()
    watch.clock.advance(minutes=20)
    watch.do("reconciliation")
    watch.clock.advance(days=1)
    watch.do("schedules")
    with watch.database.transaction() as session:
        session.merge(watch.campaigns()[-1]).state = "done"
    watch.clock.advance(days=1)
    watch.do("schedules")
    assert watch.audit_events()[-1] == "skipped"
    second = repository.commit({"op.cc": "2\n"})
    watch.clock.advance(days=1)
    watch.do("schedules")
    assert [(one.head, one.base) for one in watch.campaigns() if one.trigger == "schedule:nightly"] == [
        (first, ""),
        (second, first),
    ]


def test_a_removed_schedule_starts_nothing_more() -> None:
    at = Clock()()
    kept = policy.build_schedules(parse_config(NIGHTLY.encode()), [], at)
    assert policy.build_schedules(parse_config(CONFIG.encode()), kept, at) == []


def test_upkeep_drops_what_is_old_and_keeps_what_is_pending(dependencies: Dependencies, clock: Clock) -> None:
    old, new = clock() - timedelta(days=40), clock()
    with dependencies.database.transaction() as session:
        for at, name in ((old, "old"), (new, "new")):
            session.add(
                Delivery(id=f"read {name}", event="ping", payload=b"{}", received_at=at, state="done")
            )
            session.add(Delivery(id=f"pending {name}", event="ping", payload=b"{}", received_at=at))
            session.add(CachedResponse(url=f"https://api/{name}", etag="e", body={}, at=at))
            session.add(RateUsage(account="token", at=at, creates_content=True))
    cleanup = [task for task in list_tasks() if task.name == "cleanup"]
    run_tasks(dependencies, cleanup)
    assert note(dependencies, "cleanup") == "deleted: 1 deliveries, 1 rate usage rows, 1 cached responses"
    with dependencies.database.reading() as session:
        left = {one.id for one in session.query(Delivery)}
    assert left == {"read new", "pending old", "pending new"}


def test_effects_for_whom_nobody_watches_are_given_up_by_upkeep(
    dependencies: Dependencies, clock: Clock
) -> None:
    with dependencies.database.transaction() as session:
        target = target_lifecycle.get_or_create(session, "octo/compiler", 7, clock())
        target_lifecycle.stop_watching(session, target, TargetState.GONE, "it was deleted", clock())
        draft = outbox.EffectDraft(
            kind="check_run", key="late", target="octo/compiler", payload={}, mode="live"
        )
        outbox.post(session, [draft], campaign_id=None, issues_per_day=1, at=clock())
    run_tasks(dependencies, [task for task in list_tasks() if task.name == "cleanup"])
    with dependencies.database.reading() as session:
        (effect,) = outbox.in_state(session, EffectState.FAILED)
    assert effect.reason == "not sent: it was deleted"
