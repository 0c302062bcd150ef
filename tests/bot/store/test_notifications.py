"""Notifications between processes on one PostgreSQL database."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from sqlalchemy import text

from bot.store import Database
from bot.store.notifications import NotificationListener


@pytest.fixture
def woken(shared: Database) -> Iterator[threading.Event]:
    event = threading.Event()
    listener = NotificationListener(shared, {"inbox-reader": event.set})
    listener.start()
    assert event.wait(600), "it wakes once when it begins to listen"
    event.clear()
    yield event
    listener.stop()


def test_another_process_wakes_the_worker_of_that_name(shared: Database, woken: threading.Event) -> None:
    other = Database(shared.url.render_as_string(hide_password=False))
    other.notify("somebody-else")
    assert not woken.is_set()
    other.notify("inbox-reader")
    assert woken.wait(600)
    other.close()


def test_it_listens_again_after_its_connection_is_lost(
    shared: Database, woken: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.store.notifications.RECONNECT_S", 0.0)
    with shared.autocommit() as session:
        session.execute(
            text("select pg_terminate_backend(pid) from pg_stat_activity where query like 'listen %'")
        )
    assert woken.wait(600), "it wakes when it listens again, as it may have missed some"


def test_sqlite_has_none(tmp_path: object) -> None:
    database = Database(f"sqlite:///{tmp_path}/assay.db")
    database.migrate()
    listener = NotificationListener(database, {})
    listener.start()
    database.notify("inbox-reader")
    listener.stop()
    database.close()
