"""The database: readers and writers, and how its trouble is told."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from sqlalchemy import text

from bot.errors import InfrastructureError, SettingsError
from bot.store import Database


@pytest.fixture
def database(tmp_path: Path) -> Database:
    database = Database(f"sqlite:///{tmp_path}/assay.db")
    database.migrate()
    return database


def pause(database: Database, name: str) -> None:
    with database.transaction() as session:
        session.execute(
            text("insert into rate_limit_pauses (account, reason, until) values (:name, '', '2026-01-01')"),
            {"name": name},
        )


def pauses(database: Database) -> int:
    with database.reading() as session:
        return int(session.scalar(text("select count(*) from rate_limit_pauses")) or 0)


def test_a_reader_keeps_its_snapshot_and_waits_for_nobody(database: Database) -> None:
    with database.reading() as session:
        count = text("select count(*) from rate_limit_pauses")
        assert session.scalar(count) == 0
        with database.transaction() as writing:
            writing.execute(
                text("insert into rate_limit_pauses (account, reason, until) values ('a', '', '2026-01-01')")
            )
            assert pauses(database) == 0, "not committed yet"
        assert session.scalar(count) == 0, "one snapshot"
    assert pauses(database) == 1
    database.close()


def test_an_exception_undoes_the_transaction(database: Database) -> None:
    def fail_half_way() -> None:
        with database.transaction() as session:
            session.execute(
                text("insert into rate_limit_pauses (account, reason, until) values ('a', '', '2026-01-01')")
            )
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_half_way()
    assert pauses(database) == 0
    database.close()


def test_many_writers_take_turns(database: Database) -> None:
    def write(writer: int) -> None:
        for number in range(10):
            pause(database, f"{writer}-{number}")

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert pauses(database) == 80
    database.close()


@pytest.mark.sqlite
def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "assay.db").write_bytes(b"not a database" * 100)
    database = Database(f"sqlite:///{tmp_path}/assay.db")
    for act in (database.migrate, database.is_migrated):
        with pytest.raises(InfrastructureError, match=r"file is not a database.*ASSAY_DATABASE_URL"):
            act()
    database.close()


def test_a_folder_that_cannot_be_made() -> None:
    with pytest.raises(InfrastructureError, match=r"/proc/assay.*ASSAY_DATA_DIR"):
        Database("sqlite:////proc/assay/assay.db")


@pytest.mark.parametrize("url", ["nonsense", "mysterydb://host/name"])
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(SettingsError, match="ASSAY_DATABASE_URL"):
        Database(url)


def test_our_own_mistakes_stay_what_they_are(database: Database) -> None:
    pause(database, "a")
    with pytest.raises(Exception, match=r"(?i)unique") as caught:
        pause(database, "a")
    assert not isinstance(caught.value, InfrastructureError)
    database.close()
