"""Exactly once, whatever dies in between."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import delete, text

from bot.errors import InfrastructureError, InternalError, RefusalError
from bot.github.dry_run import DryRunSink
from bot.github.limits import ThrottledError
from bot.github.outbox_queue import (
    FIRST_WAIT,
    LEASE,
    LONGEST_WAIT,
    MAX_ATTEMPTS,
    MAX_QUARANTINED_ATTEMPTS,
    OutboxQueue,
)
from bot.github.requests import Sent
from bot.github.responses import RepositoryUnavailableError
from bot.store import Session, bugs, outbox, overview, suppression, targets
from bot.store.database import Database
from bot.store.models import Effect, EffectState, SuppressionCause
from bot.store.outbox import ClaimedEffect
from bot.worker import Worker
from tests.bot.github.outbox_kit import START, Clock, campaign, check_run, database, issue, post, row
from tests.bot.reports import sample_campaign


class FakeSink:
    """A live sink that remembers what people saw; `act` runs before or after it becomes visible."""

    live = True

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.asked = 0
        self.before: Callable[[], None] = lambda: None
        self.after: Callable[[], None] = lambda: None
        self.on_find: Callable[[], None] = lambda: None

    def send(self, effect: ClaimedEffect) -> Sent:
        self.before()
        self.shown.append(effect.key)
        self.after()
        return Sent(f"https://github.com/acme/graphs/issues/{len(self.shown)}", len(self.shown))

    def find(self, effect: ClaimedEffect) -> Sent | None:
        self.asked += 1
        self.on_find()
        return Sent("found", 1) if effect.key in self.shown else None

    def account(self, target: str) -> str:
        return target.partition("/")[0]


class ProcessKilled(BaseException):
    """Stands for the end of the process: nobody catches it."""


@pytest.fixture
def store(tmp_path: Path) -> Database:
    made = database(tmp_path)
    campaign(made)
    return made


@pytest.fixture
def fake_sink() -> FakeSink:
    return FakeSink()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def publisher(store: Database, fake_sink: FakeSink, clock: Clock, tmp_path: Path) -> Worker:
    return Worker(OutboxQueue(store, fake_sink, clock, DryRunSink(tmp_path / "outbox")))


def raising(error: BaseException) -> Callable[[], None]:
    errors: Iterator[BaseException] = iter([error])

    def act() -> None:
        for once in errors:
            raise once

    return act


def drain(publisher: Worker) -> int:
    done = 0
    while publisher.run_once():
        done += 1
    return done


def test_effects_are_sent_once_and_in_order(publisher: Worker, store: Database, fake_sink: FakeSink) -> None:
    post(store, issue("a"), check_run("b"))
    assert drain(publisher) == 2
    assert fake_sink.shown == [issue("a").key, "b"]
    assert fake_sink.asked == 0
    sent = row(store, issue("a").key)
    assert (sent.state, sent.url, sent.sent_at) == ("sent", "https://github.com/acme/graphs/issues/1", START)
    with store.reading() as session:
        bug = bugs.find(session, sample_campaign.TARGET, "a")
        assert bug is not None
        assert (bug.state, bug.issue) == ("reported", 1)
    assert not publisher.run_once()


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_process_that_dies_while_sending(
    moment: str, publisher: Worker, store: Database, fake_sink: FakeSink, clock: Clock
) -> None:
    post(store, issue("a"))
    setattr(fake_sink, moment, raising(ProcessKilled()))
    with pytest.raises(ProcessKilled):
        publisher.run_once()
    assert row(store, issue("a").key).state == "sending"
    assert not publisher.run_once()  # the lease protects a sender that is merely slow
    clock.now += LEASE
    assert drain(publisher) == 1
    assert fake_sink.shown == [issue("a").key]
    assert fake_sink.asked == 1
    assert row(store, issue("a").key).state == "sent"


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_failure_nobody_can_interpret_is_looked_up(
    moment: str, publisher: Worker, store: Database, fake_sink: FakeSink, clock: Clock
) -> None:
    post(store, check_run())
    setattr(fake_sink, moment, raising(InfrastructureError("502 in the middle")))
    assert drain(publisher) == 1
    assert row(store, "c0ffee").reason == "502 in the middle"
    clock.now += FIRST_WAIT
    assert drain(publisher) == 1
    assert (fake_sink.shown, fake_sink.asked) == (["c0ffee"], 1)


def test_while_github_cannot_be_asked_nothing_is_sent(
    publisher: Worker, store: Database, fake_sink: FakeSink, clock: Clock
) -> None:
    post(store, check_run())
    fake_sink.before = raising(InfrastructureError("lost"))
    fake_sink.on_find = raising(InfrastructureError("cannot list"))
    for _ in range(2):
        assert drain(publisher) == 1
        assert fake_sink.shown == []
        clock.advance(hours=1)
    assert drain(publisher) == 1
    assert (fake_sink.shown, fake_sink.asked) == (["c0ffee"], 2)


def test_waits_double_and_end_with_a_person(
    publisher: Worker, store: Database, fake_sink: FakeSink, clock: Clock
) -> None:
    post(store, issue("a"))
    fake_sink.before = fake_sink.on_find = lambda: (_ for _ in ()).throw(InfrastructureError("down"))
    waits = []
    while row(store, issue("a").key).state != EffectState.FAILED.value:
        assert drain(publisher) == 1
        later = row(store, issue("a").key).not_before
        if later is not None:
            waits.append(later - clock.now)
            clock.now = later
    assert len(waits) == MAX_ATTEMPTS - 1
    assert waits[:3] == [FIRST_WAIT, 2 * FIRST_WAIT, 4 * FIRST_WAIT]
    assert waits[-1] == timedelta(hours=1)
    assert row(store, issue("a").key).reason == f"given up after {MAX_ATTEMPTS} attempts: down"
    assert fake_sink.shown == []


def test_throttling_waits_as_long_as_github_says(
    publisher: Worker, store: Database, fake_sink: FakeSink, clock: Clock
) -> None:
    post(store, check_run())
    fake_sink.before = raising(ThrottledError("slow down", 600))
    assert drain(publisher) == 1
    waiting = row(store, "c0ffee")
    assert (waiting.state, waiting.not_before) == ("pending", START + timedelta(minutes=10))
    clock.advance(minutes=10)
    assert drain(publisher) == 1
    assert (fake_sink.shown, fake_sink.asked) == (["c0ffee"], 0)


def test_a_throttled_retry_is_still_looked_up(
    publisher: Worker, store: Database, fake_sink: FakeSink, clock: Clock
) -> None:
    post(store, check_run())
    fake_sink.after = raising(InfrastructureError("lost the answer"))
    drain(publisher)
    clock.advance(hours=1)
    fake_sink.on_find = raising(ThrottledError("slow down", 60))
    drain(publisher)
    clock.advance(hours=1)
    drain(publisher)
    assert (fake_sink.shown, row(store, "c0ffee").state) == (["c0ffee"], "sent")


def test_a_refusal_is_final_and_keeps_its_reason(
    publisher: Worker, store: Database, fake_sink: FakeSink
) -> None:
    post(store, issue("a"), check_run("b"))
    fake_sink.before = raising(RefusalError("issues are switched off"))
    assert drain(publisher) == 2
    assert fake_sink.shown == ["b"]
    failed = row(store, issue("a").key)
    assert (failed.state, failed.reason) == ("failed", "issues are switched off")


def test_the_brake_stops_everything(publisher: Worker, store: Database, fake_sink: FakeSink) -> None:
    post(store, issue("a"), check_run("b"))
    with store.transaction() as session:
        outbox.enable_kill_switch(session, outbox.ALL_TARGETS, "a flood", START)
    assert drain(publisher) == 0
    assert fake_sink.shown == []
    with store.transaction() as session:
        outbox.disable_kill_switch(session, outbox.ALL_TARGETS)
    assert drain(publisher) == 2


def test_targets_in_dry_run_mode_hear_nothing(tmp_path: Path, fake_sink: FakeSink, clock: Clock) -> None:
    store = database(tmp_path)
    campaign(store, "dry-run")
    post(store, issue("a"), check_run("b"))
    drain(Worker(OutboxQueue(store, fake_sink, clock, DryRunSink(tmp_path / "outbox"))))
    assert fake_sink.shown == []
    assert len(list((tmp_path / "outbox").rglob("*.json"))) == 2
    with pytest.raises(InternalError, match="dry-run"):
        Worker(OutboxQueue(store, fake_sink, clock))


def test_a_bug_of_ours_quarantines_its_effect_only(
    publisher: Worker, store: Database, fake_sink: FakeSink, clock: Clock
) -> None:
    post(store, check_run("a"), check_run("b"))
    fake_sink.before = raising(InternalError("ours"))
    assert drain(publisher) == 2
    assert fake_sink.shown == ["b"]
    quarantined = row(store, "a")
    assert quarantined.state == "sending"
    assert quarantined.reason == "a bug of Assay: InternalError: ours"
    with store.reading() as session:
        seen = overview.of_target(session, sample_campaign.TARGET, clock())
    assert seen is None or [one.key for one in seen.retrying] == ["a"]
    clock.now += FIRST_WAIT
    assert drain(publisher) == 1
    assert (fake_sink.shown, row(store, "a").state) == (["b", "a"], "sent")


def test_a_bug_that_stays_ends_with_a_person(
    publisher: Worker, store: Database, fake_sink: FakeSink, clock: Clock
) -> None:
    post(store, check_run("a"))

    def fail() -> None:
        raise KeyError("id")

    fake_sink.before = fail
    for _ in range(MAX_QUARANTINED_ATTEMPTS):
        assert drain(publisher) == 1
        clock.now += LONGEST_WAIT
    assert not publisher.run_once()
    assert row(store, "a").state == "failed"
    assert row(store, "a").reason == "given up after 5 attempts: a bug of Assay: KeyError: 'id'"


def test_a_name_that_a_later_check_refuses_stops_nobody_else(
    publisher: Worker, store: Database, fake_sink: FakeSink
) -> None:
    post(store, replace(check_run("a"), target="acme/..", mode="dry-run"), check_run("b"))
    assert drain(publisher) == 2
    assert (row(store, "a").state, row(store, "b").state) == ("pending", "sent")


def test_a_damaged_row_stops_nobody_else(publisher: Worker, store: Database, fake_sink: FakeSink) -> None:
    post(store, check_run("a"), check_run("b"))
    with store.transaction() as session:
        session.execute(text("UPDATE effects SET payload = '{' WHERE key = 'a'"))
    assert drain(publisher) == 1
    assert fake_sink.shown == ["b"]
    with store.reading() as session:
        found = session.execute(text("SELECT state, reason FROM effects WHERE key = 'a'")).one()
    assert found[0] == "failed"
    assert "damaged" in found[1]


def test_it_runs_until_told_to_stop(publisher: Worker, store: Database, fake_sink: FakeSink) -> None:
    post(store, issue("a"))
    stop_work = threading.Event()
    fake_sink.after = stop_work.set
    publisher.run_forever(stop_work)
    assert fake_sink.shown == [issue("a").key]


def failing(store: Database, meanwhile: Callable[[Session], object]) -> Callable[[], None]:
    """GitHub does not take it, and something happens while it is asked to."""

    def act() -> None:
        with store.transaction() as session:
            meanwhile(session)
        raise InfrastructureError("503")

    return act


def test_what_is_forgotten_while_it_is_sent_leaves_the_sender_alive(
    publisher: Worker, store: Database, fake_sink: FakeSink
) -> None:
    post(store, issue("a"), check_run("b"), check_run("c"))

    def forget() -> None:
        with store.transaction() as session:
            session.execute(delete(Effect).where(Effect.key == fake_sink.shown[-1]))

    fake_sink.after = forget
    publisher.run_once()
    fake_sink.after = failing(store, lambda session: session.execute(delete(Effect).where(Effect.key == "b")))
    publisher.run_once()
    fake_sink.after = lambda: None
    assert drain(publisher) == 1
    assert fake_sink.shown == [issue("a").key, "b", "c"]


@pytest.mark.parametrize(
    "error", [InfrastructureError("503"), ThrottledError("slow", 60), RefusalError("404")]
)
def test_what_its_target_does_not_want_any_more_is_not_tried_again(
    publisher: Worker, store: Database, fake_sink: FakeSink, clock: Clock, error: Exception
) -> None:
    """The repository is archived while its check run is sent, and GitHub refuses, or is away."""
    post(store, check_run())

    def act() -> None:
        with store.transaction() as session:
            targets.stop_work(session, sample_campaign.TARGET, "it was archived", clock.now)
        raise error

    fake_sink.before = act
    publisher.run_once()
    fake_sink.before = lambda: None
    clock.advance(hours=1)
    assert drain(publisher) == 0
    assert row(store, "c0ffee").reason == "not sent: it was archived"


@pytest.mark.parametrize("described", ["before", "after"])
def test_what_an_archived_repository_refused_goes_on_when_it_is_none(
    publisher: Worker, store: Database, fake_sink: FakeSink, clock: Clock, described: str
) -> None:
    """We are told that it is archived while GitHub refuses the check run, or right after."""
    post(store, check_run())

    def archived() -> None:
        with store.transaction() as session:
            targets.stop_work(session, sample_campaign.TARGET, "it was archived", clock.now)

    def act() -> None:
        if described == "before":
            archived()
        raise RepositoryUnavailableError("it is read-only", SuppressionCause.UNWATCHED)

    fake_sink.before = act
    publisher.run_once()
    fake_sink.before = lambda: None
    if described == "after":
        archived()
    there = row(store, "c0ffee")
    assert (there.state, there.cause, there.attempts) == ("failed", "unwatched", 0)
    with store.transaction() as session:
        assert (
            suppression.reactivate(
                session, sample_campaign.TARGET, SuppressionCause.UNWATCHED, drop_unsent=False
            )
            == 1
        )
    assert drain(publisher) == 1
    assert fake_sink.shown == ["c0ffee"]


def withdraw(session: Session) -> None:
    bug = bugs.find(session, sample_campaign.TARGET, "a")
    assert bug is not None
    outbox.withdraw(session, bug.id, "it passes now")


@pytest.mark.parametrize("arrived", [True, False])
def test_an_issue_that_is_withdrawn_while_it_is_sent(
    publisher: Worker, store: Database, fake_sink: FakeSink, clock: Clock, arrived: bool
) -> None:
    """It stays here unless it is out; whether it is, GitHub is asked."""
    post(store, issue("a"))
    setattr(fake_sink, "after" if arrived else "before", failing(store, withdraw))
    publisher.run_once()
    fake_sink.before = fake_sink.after = lambda: None
    clock.advance(hours=1)
    assert drain(publisher) == 1
    there = row(store, issue("a").key)
    if arrived:
        assert (there.state, there.reason) == ("sent", "")
    else:
        assert (there.state, there.reason) == ("held", "withdrawn: it passes now")
    assert (len(fake_sink.shown), fake_sink.asked) == (arrived, 1)


def test_an_issue_that_is_withdrawn_and_wanted_again_while_it_is_sent_goes_out(
    publisher: Worker, store: Database, fake_sink: FakeSink, clock: Clock
) -> None:
    post(store, issue("a"))
    fake_sink.before = failing(store, withdraw)
    publisher.run_once()
    fake_sink.before = lambda: None
    post(store, issue("a"))
    clock.advance(hours=1)
    assert drain(publisher) == 1
    assert row(store, issue("a").key).state == "sent"


KILLED = """
import os, signal, sys
from pathlib import Path
from bot.github.dry_run import DryRunSink
from bot.github.outbox_queue import OutboxQueue
from bot.worker import Worker
from bot.store.database import Database

folder, moment = Path(sys.argv[1]), sys.argv[2]

class Fatal(DryRunSink):
    def send(self, effect):
        if moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        sent = super().send(effect)
        if moment == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return sent

Worker(OutboxQueue(Database(sys.argv[3]), Fatal(folder / "outbox"))).run_once()
"""


@pytest.mark.parametrize("moment", ["before", "after"])
def test_kill_9_loses_nothing_and_doubles_nothing(moment: str, store: Database, tmp_path: Path) -> None:
    post(store, issue("a"))
    url = store.url.render_as_string(hide_password=False)
    done = subprocess.run([sys.executable, "-c", KILLED, tmp_path, moment, url], timeout=600, check=False)
    assert done.returncode == -signal.SIGKILL
    assert row(store, issue("a").key).state == "sending"
    publisher = Worker(OutboxQueue(store, DryRunSink(tmp_path / "outbox")))
    assert drain(publisher) == 1  # at once: a rehearsal waits for no lease
    files = sorted(path.name for path in (tmp_path / "outbox").rglob("*") if path.is_file())
    assert files == [f"issue-{issue('a').key}.json", f"issue-{issue('a').key}.md"]
    assert row(store, issue("a").key).state == "sent"
