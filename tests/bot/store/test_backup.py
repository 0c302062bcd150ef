"""Backups: every table, on both engines and from one to the other, from every earlier revision."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import MetaData, Table, insert, select, text
from sqlalchemy.types import JSON, Boolean, DateTime, Integer, LargeBinary

from bot.errors import UsageError
from bot.store import Database, backup, now
from bot.store.schema import revisions

Made = Callable[[], Database]
Rows = dict[str, list[tuple[Any, ...]]]


@pytest.fixture(params=["sqlite", "postgresql"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Made]:
    """Makes empty databases of one engine."""
    made: list[Database] = []

    def make_one() -> Database:
        name = f"made-{len(made)}"
        if request.param == "sqlite":
            url = f"sqlite:///{tmp_path}/{name}.db"
        else:
            url = request.getfixturevalue("server").database(f"{tmp_path}/{name}")
        made.append(Database(url))
        return made[-1]

    yield make_one
    for database in made:
        database.close()
    if request.param == "postgresql":
        request.getfixturevalue("server").drop_all()


def tables(database: Database) -> list[Table]:
    metadata = MetaData()
    metadata.reflect(database.engine)
    return [table for table in metadata.sorted_tables if table.name != "alembic_version"]


def fill(database: Database) -> None:
    """Two rows in each table, with a value of its type in each column, and a reference to a later row."""
    described = tables(database)
    with database.engine.begin() as connection:
        for table in described:
            for number in (1, 2):
                row = {column.name: value(column, number) for column in table.columns}
                for key in table.foreign_keys:
                    row[key.parent.name] = (
                        value(key.column, number) if key.column.table is not table else None
                    )
                connection.execute(insert(table).values(row))
        if any("duplicate_of" in table.columns for table in described):
            connection.execute(text("update bugs set duplicate_of = 2 where id = 1"))


def value(column: Any, number: int) -> Any:
    kind = column.type
    if isinstance(kind, Boolean):
        return number == 1
    if isinstance(kind, Integer):
        return number
    if isinstance(kind, DateTime):
        return datetime.fromisoformat(f"2026-01-0{number}T12:00:00.123456+00:00")
    if isinstance(kind, LargeBinary):
        return bytes([0, 255, number])
    if isinstance(kind, JSON):
        return {"name": f"é\n{number}"}
    return kind.python_type(number) if kind.python_type is not str else f"ü'{number}"[: kind.length or 9]


def content(database: Database) -> Rows:
    """All rows; times without their zone, which SQLite drops."""
    found: Rows = {}
    described = tables(database)
    with database.reading() as session:
        for table in described:
            rows = session.execute(select(table).order_by(*table.primary_key))
            found[table.name] = [
                tuple(one.replace(tzinfo=None) if isinstance(one, datetime) else one for one in row)
                for row in rows
            ]
    return found


@pytest.mark.parametrize("revision", ["0001", "0008", revisions()[-1]])
def test_data_of_a_revision_survive_backup_restore_and_migration(
    make: Made, tmp_path: Path, revision: str
) -> None:
    """`python -m tests.sweeps.migrations` does it for all revisions."""
    check_revision(make, tmp_path, revision)


def check_revision(make: Made, folder: Path, revision: str) -> None:
    old, migrated = make(), make()
    old.migrate(revision)
    fill(old)
    filled = {table.name for table in tables(old)}
    backup.create(old, folder / f"{revision}.zip")
    old.migrate()
    backup.restore(migrated, folder / f"{revision}.zip")
    assert content(migrated) == content(old)
    # 0013 collects the two names that all tables have.
    assert sum(map(len, content(old).values())) == 2 * len(filled | {"target_names"})
    assert backup.problems(old) == backup.problems(migrated) == []


def test_a_backup_of_one_engine_is_restored_on_the_other(make: Made, tmp_path: Path, postgresql: str) -> None:
    there = make()
    there.migrate()
    fill(there)
    backup.create(there, tmp_path / "first.zip")
    for name, other in (
        ("second.zip", Database(f"sqlite:///{tmp_path}/other.db")),
        ("third.zip", Database(postgresql)),
    ):
        backup.restore(other, tmp_path / "first.zip")
        assert content(other) == content(there)
        manifest = backup.create(other, tmp_path / name)
        assert manifest.tables == backup.verify(tmp_path / "first.zip").tables
        other.close()


def test_new_rows_get_new_ids_after_a_restore(make: Made, tmp_path: Path) -> None:
    there, restored = make(), make()
    there.migrate()
    fill(there)
    backup.create(there, tmp_path / "backup.zip")
    backup.restore(restored, tmp_path / "backup.zip")
    with restored.transaction() as session:
        names = "(account, at, creates_content)"
        session.execute(
            text(f"insert into rate_usage {names} values ('a', :at, :no)"), {"at": now(), "no": False}
        )
        assert session.scalar(text("select max(id) from rate_usage")) == 3


def test_a_restore_refuses_a_database_with_rows(make: Made, tmp_path: Path) -> None:
    there = make()
    there.migrate()
    fill(there)
    before = content(there)
    backup.create(there, tmp_path / "backup.zip")
    with pytest.raises(UsageError, match="has rows already"):
        backup.restore(there, tmp_path / "backup.zip")
    assert content(there) == before


def damage(path: Path, name: str, change: Callable[[bytes], bytes]) -> None:
    with zipfile.ZipFile(path) as archive:
        parts = {part: archive.read(part) for part in archive.namelist()}
    parts[name] = change(parts[name])
    with zipfile.ZipFile(path, "w") as archive:
        for part, data in parts.items():
            archive.writestr(part, data)


def test_a_damaged_backup_is_detected_and_leaves_the_database_empty(tmp_path: Path) -> None:
    there, restored = (Database(f"sqlite:///{tmp_path}/{name}.db") for name in ("there", "restored"))
    there.migrate()
    fill(there)
    path = tmp_path / "backup.zip"
    for name, change, why in (
        ("bugs.jsonl", lambda data: data.replace(b"2026", b"2025"), "damaged"),
        ("jobs.jsonl", lambda data: data.partition(b"\n")[2], "damaged"),
        ("manifest.json", lambda data: data.replace(revisions()[-1].encode(), b"9999"), "newer version"),
        ("manifest.json", lambda _: b"{}", "no backup"),
    ):
        backup.create(there, path)
        damage(path, name, change)
        with pytest.raises(UsageError, match=why):
            backup.restore(restored, path)
        assert restored.revision() is None
        path.unlink()
    path.write_bytes(b"PK")
    with pytest.raises(UsageError, match="no backup"):
        backup.verify(path)
    there.close()
    restored.close()


def test_a_backup_overwrites_nothing_and_leaves_no_half_file(tmp_path: Path) -> None:
    there = Database(f"sqlite:///{tmp_path}/there.db")
    with pytest.raises(UsageError, match="no tables"):
        backup.create(there, tmp_path / "backup.zip")
    assert not [path for path in tmp_path.iterdir() if "backup" in path.name]
    there.migrate()
    backup.create(there, tmp_path / "backup.zip")
    with pytest.raises(UsageError, match="exists"):
        backup.create(there, tmp_path / "backup.zip")
    there.close()


@pytest.mark.sqlite
def test_the_check_finds_rows_that_refer_to_nothing_and_foreign_tables(tmp_path: Path) -> None:
    there = Database(f"sqlite:///{tmp_path}/there.db")
    there.migrate()
    fill(there)
    with there.engine.connect() as connection:
        connection.exec_driver_sql("create table stranger (id integer)")
        connection.commit()
        raw: Any = connection.connection.driver_connection
        raw.execute("pragma foreign_keys=off")
        raw.execute("delete from bugs where id = 2")
    found = backup.problems(there)
    assert any("stranger" in line for line in found)
    assert any("refers to a missing row of bugs" in line for line in found)
    there.close()
