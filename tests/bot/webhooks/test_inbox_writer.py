"""The inbox writer: on disk before it says so, once for each id, many at a time."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from bot.errors import DeliveryError, InfrastructureError
from bot.store import Database, inbox, now
from bot.webhooks import inbox_writer as module
from bot.webhooks.inbox_writer import InboxWriter


def test_many_at_once_are_stored_in_order_and_once(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/assay.db")
    database.migrate()
    wakes: list[int] = []
    writer = InboxWriter(database, lambda: wakes.append(1))

    async def flood() -> list[bool]:
        names = [f"d{number % 100:02}" for number in range(200)]
        tasks = [asyncio.ensure_future(writer.store(name, "push", b"{}")) for name in names]
        await asyncio.sleep(0)  # all are queued before the thread looks
        writer.start()
        return await asyncio.gather(*tasks)

    stored = asyncio.run(flood())
    writer.stop()
    assert stored == [True] * 100 + [False] * 100
    assert len(wakes) == 4, "200 deliveries make four transactions of at most 64"
    with database.reading() as session:
        places = inbox.pending(session, None, 1000)
    assert [place.id for place in places] == [f"d{number:02}" for number in range(100)]
    assert len({place.received_at for place in places}) == 100
    database.close()


def test_large_ones_share_no_transaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH_BYTES", 8)
    database = Database(f"sqlite:///{tmp_path}/assay.db")
    database.migrate()
    wakes: list[int] = []
    writer = InboxWriter(database, lambda: wakes.append(1))

    async def send() -> list[bool]:
        tasks = [asyncio.ensure_future(writer.store(f"d{n}", "push", b"12345")) for n in range(5)]
        await asyncio.sleep(0)  # all are queued before the thread looks
        writer.start()
        return await asyncio.gather(*tasks)

    assert asyncio.run(send()) == [True] * 5
    writer.stop()
    assert len(wakes) == 3, "two and two are full, one is left"
    database.close()


def test_one_that_comes_twice_at_once_is_new_once(tmp_path: Path) -> None:
    """One statement stores a batch, and the database says only which ids are new."""
    database = Database(f"sqlite:///{tmp_path}/assay.db")
    database.migrate()

    def store(*ids: str) -> list[bool]:
        with database.autocommit() as session:
            return inbox.store(session, [inbox.ReceivedDelivery(name, "push", b"{}", now()) for name in ids])

    assert store("a", "b", "a") == [True, True, False]
    assert store("b", "c", "c") == [False, True, False]
    with database.reading() as session:
        assert inbox.counts(session) == {"pending": 3}
    database.close()


@pytest.mark.sqlite
def test_a_database_that_fails_is_told_and_the_thread_goes_on(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/assay.db")  # not migrated: there is no table
    writer = InboxWriter(database, lambda: None)
    writer.start()
    with pytest.raises(InfrastructureError, match="no such table"):
        asyncio.run(writer.store("d", "push", b"{}"))
    database.migrate()
    assert asyncio.run(writer.store("d", "push", b"{}"))
    writer.stop()
    assert writer.problem == "its thread ended"
    database.close()


def test_too_much_waiting_turns_newcomers_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_WAITING_BYTES", 10)
    database = Database(f"sqlite:///{tmp_path}/assay.db")
    database.migrate()
    writer = InboxWriter(database, lambda: None)

    async def crowd() -> None:
        first = asyncio.ensure_future(writer.store("a", "push", b"123456789"))
        await asyncio.sleep(0)
        with pytest.raises(DeliveryError) as caught:
            await writer.store("b", "push", b"123456789")
        assert caught.value.status == 503
        writer.start()
        assert await first
        assert await writer.store("b", "push", b"123456789")

    asyncio.run(crowd())
    writer.stop()
    database.close()


def test_nobody_waits_for_a_writer_that_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = Database(f"sqlite:///{tmp_path}/assay.db")
    died: list[type[BaseException]] = []
    monkeypatch.setattr(threading, "excepthook", lambda reported: died.append(reported.exc_type))

    def break_down(*_: object) -> bool:
        raise ZeroDivisionError("our bug")

    monkeypatch.setattr(inbox, "store", break_down)
    writer = InboxWriter(database, lambda: None)

    async def deliver() -> tuple[bool | BaseException]:
        first = asyncio.ensure_future(writer.store("a", "push", b"{}"))
        await asyncio.sleep(0)
        writer.start()
        with pytest.raises(ZeroDivisionError):
            await first
        return await asyncio.gather(writer.store("b", "push", b"{}"), return_exceptions=True)

    (answer,) = asyncio.run(deliver())
    assert isinstance(answer, InfrastructureError)
    writer.stop()
    assert died == [ZeroDivisionError], "our bug is shown"
    assert writer.problem == "its thread ended"
    database.close()
