"""On PostgreSQL as on SQLite: what a transaction has read stays so until it ends, and none ends another."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import TextClause, text

from bot.errors import InfrastructureError
from bot.store import Database, Session, inbox, now, outbox, response_cache, targets
from bot.store import database as opening
from bot.store.models import Effect, Target
from tests.bot.github.outbox_kit import START, campaign, check_run, post
from tests.support.live_service import wait_for

_WAITING = text(
    "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
)


def in_between(
    database: Database,
    first: Callable[[Session, Callable[[], None]], None],
    second: Callable[[Session], object],
) -> None:
    """Does both, each in a transaction of its own process; `first` lets the second begin where it says so.

    It goes on once the second has ended, or waits for it. Raises what either raises.
    """
    began = threading.Event()

    def do_second() -> None:
        assert began.wait(600)
        other = Database(database.url.render_as_string(hide_password=False))
        try:
            with other.transaction() as session:
                second(session)
        finally:
            other.close()

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(do_second)

        def let() -> None:
            began.set()
            wait_for(lambda: done.done() or waits(database), "the other one")

        with database.transaction() as session:
            first(session, let)
        done.result()


def waits(database: Database) -> bool:
    with database.reading() as session:
        return bool(session.scalar(_WAITING))


def test_rows_that_are_locked_in_another_order_are_no_deadlock(shared: Database) -> None:
    """An event of a repository locks it, then its installation; one of the installation the other way."""
    with shared.transaction() as session:
        targets.ensure_installation(session, 1, "octo", now())
        session.add(Target(name="octo/compiler", installation_id=1))

    def of_repository(session: Session, let: Callable[[], None]) -> None:
        targets.lock(session, "octo/compiler")
        let()
        targets.lock_installation(session, 1)

    def of_installation(session: Session) -> None:
        targets.lock_installation(session, 1)
        targets.of_installation(session, 1)

    in_between(shared, of_repository, of_installation)


def test_what_is_said_anew_while_it_is_recorded_as_sent_is_sent(shared: Database) -> None:
    """The publisher of one process has read the row; another one's campaign gives it another content."""
    campaign(shared)
    draft = replace(check_run(), editable=True)
    post(shared, draft)
    newer = replace(draft, payload={**draft.payload, "conclusion": "neutral"})

    def mark_sent(session: Session, let: Callable[[], None]) -> None:
        row = session.get_one(Effect, draft.key)
        let()
        assert row.revision == 1
        outbox.mark_sent(session, draft.key, "url", None, START, remote_id="1")

    def say(session: Session) -> None:
        outbox.post(session, [newer], campaign_id=1, issues_per_day=0, at=START)

    in_between(shared, mark_sent, say)
    with shared.reading() as session:
        row = session.get_one(Effect, draft.key)
        assert (row.state, row.revision, row.sent_revision) == ("pending", 2, 1)


def test_two_that_keep_the_same_answer_for_the_first_time(shared: Database) -> None:
    def store_response(session: Session, let: Callable[[], None]) -> None:
        assert response_cache.find(session, "1 /repos/octo/compiler?") is None
        let()
        response_cache.store_response(session, "1 /repos/octo/compiler?", "a", {}, START)

    in_between(
        shared,
        store_response,
        lambda session: response_cache.store_response(session, "1 /repos/octo/compiler?", "b", {}, START),
    )
    with shared.reading() as session:
        assert response_cache.find(session, "1 /repos/octo/compiler?") == ("b", {})


def test_deliveries_are_stored_whoever_writes(shared: Database) -> None:
    """GitHub waits for that answer, ten seconds at most."""
    arrival = inbox.ReceivedDelivery("d", "push", b"{}", now())
    with shared.transaction(), ThreadPoolExecutor(1) as pool:

        def store() -> list[bool]:
            with shared.autocommit() as session:
                return inbox.store(session, [arrival])

        stored: Future[list[bool]] = pool.submit(store)
        assert stored.result(600) == [True]


def test_a_turn_is_not_waited_for_for_ever(shared: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that hangs in its turn must not stop the others without a word."""
    monkeypatch.setattr(opening, "BUSY_TIMEOUT_S", 0.01)
    other = Database(shared.url.render_as_string(hide_password=False))
    with shared.transaction() as session:
        session.execute(text("select 1"))
        with pytest.raises(InfrastructureError, match="lock timeout"), other.transaction():
            pass
    other.close()


def test_a_process_that_was_stopped_in_its_turn_has_trouble_and_no_bug(
    shared: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database ends it meanwhile; what it was at is done again, as after any trouble."""
    monkeypatch.setattr(opening, "IDLE_TIMEOUT_S", 0.01)
    stopped = Database(shared.url.render_as_string(hide_password=False))
    gone = text("select count(*) = 0 from pg_stat_activity where pid = :pid")

    def work() -> None:
        with stopped.transaction() as session:
            here = session.scalar(text("select pg_backend_pid()"))
            wait_for(lambda: reads(shared, gone, pid=here), "the end of the connection")
            session.execute(text("select 1"))

    with pytest.raises(InfrastructureError, match="idle-in-transaction"):
        work()
    with stopped.reading() as session:
        assert session.scalar(text("select 1")) == 1, "another connection"
    stopped.close()


def test_a_connection_that_died_while_nobody_used_it_is_replaced(
    shared: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "PING_AFTER_IDLE_S", 0.0)
    other = Database(shared.url.render_as_string(hide_password=False))
    with other.reading() as session:
        idle = session.scalar(text("select pg_backend_pid()"))
    assert reads(shared, text("select pg_terminate_backend(:pid, 600000)"), pid=idle)
    with other.transaction() as session:
        assert session.scalar(text("select pg_backend_pid()")) != idle
    other.close()


def test_what_need_not_be_durable_does_not_wait_for_the_disk(shared: Database) -> None:
    setting = text("select current_setting('synchronous_commit')")
    usual = reads(shared, setting)
    with shared.transaction(durable=False) as session:
        assert session.scalar(setting) == "off"
    with shared.transaction() as session:  # the same connection
        assert session.scalar(setting) == usual != "off"
    with shared.autocommit() as session:
        assert session.scalar(setting) == usual


def reads(database: Database, query: TextClause, **values: object) -> object:
    with database.reading() as session:
        return session.scalar(query, values)
