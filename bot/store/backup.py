"""Copies all tables to one file and back, on either engine, and from one engine to the other.

A backup is a ZIP archive: `TABLE.jsonl` for each table, a JSON array for each row, and `manifest.json`, last,
with the revision and for each table its columns, number of rows and the SHA-256 of its lines. Times are ISO
8601 in UTC, bytes base64. Tables are read as the database describes them, not as the models do, so that a
backup of an older version can be restored: at its own revision, and migrated then.
"""

from __future__ import annotations

import base64
import json
import os
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import Column, MetaData, Table, bindparam, func, insert, select, text, update
from sqlalchemy.orm import Session
from sqlalchemy.types import DateTime, LargeBinary

from bot.errors import UsageError
from bot.store import schema
from bot.store.database import Database, now

MANIFEST = "manifest.json"
FORMAT = 1
#: Rows read and inserted at a time.
CHUNK = 500
_VERSION_TABLE = "alembic_version"


@dataclass(frozen=True)
class TableCopy:
    """One table of a backup: its columns, rows, and the SHA-256 of its lines."""

    columns: tuple[str, ...]
    rows: int
    digest: str


@dataclass(frozen=True)
class Manifest:
    """What a backup holds; `created_at` is when its snapshot was taken."""

    format: int
    revision: str
    created_at: datetime
    tables: Mapping[str, TableCopy]


def create(database: Database, path: Path) -> Manifest:
    """Writes a consistent snapshot to `path`, which appears when it is complete; writers do not wait.

    Raises UsageError if the file exists or the database has no tables.
    """
    if path.exists():
        raise UsageError(f"{path} exists; a backup overwrites nothing, so name another file")
    with database.reading() as session, _new_file(path) as file:
        revision = database.revision()
        if revision is None:
            raise UsageError("the database has no tables; start `assay serve` or run `assay db migrate` once")
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            copies = {table.name: _write_table(session, table, archive) for table in _tables(session)}
            manifest = Manifest(FORMAT, revision, now(), copies)
            archive.writestr(MANIFEST, json.dumps(asdict(manifest), default=str))
    return manifest


def verify(path: Path) -> Manifest:
    """Reads a backup and checks every line; raises UsageError if it is damaged or of a newer version."""
    with _opened(path) as archive:
        manifest = _read_manifest(archive, path)
        for name, copy in manifest.tables.items():
            digest, rows = sha256(), 0
            for line in _lines(archive, name):
                digest.update(line)
                rows += 1
            if (rows, digest.hexdigest()) != (copy.rows, copy.digest):
                raise UsageError(
                    f"{path} is damaged: table {name} has {rows} rows, {copy.rows} were written, or their "
                    "content differs; take an older backup"
                )
    return manifest


def restore(database: Database, path: Path) -> Manifest:
    """Fills an empty database and migrates it; nothing remains if it fails.

    Raises UsageError if the backup is damaged or of a newer version, or the database has rows.
    """
    manifest = verify(path)
    if database.revision() is not None:
        with database.reading() as session:
            full = [table.name for table in _tables(session) if session.scalar(_count(table))]
        if full:
            raise UsageError(
                f"the database has rows already, in {', '.join(full)}; restore into an empty database"
            )
        database.migrate("base")
    database.migrate(manifest.revision)
    try:
        with database.transaction() as session, _opened(path) as archive:
            for table in _tables(session):
                _read_table(session, table, manifest.tables[table.name], archive)
    except BaseException:
        database.migrate("base")
        raise
    database.migrate()
    return manifest


def _tables(session: Session) -> list[Table]:
    """The tables as the database describes them, each after those it refers to."""
    metadata = MetaData()
    metadata.reflect(session.connection())
    return [table for table in metadata.sorted_tables if table.name != _VERSION_TABLE]


def _count(table: Table) -> Any:
    return select(func.count()).select_from(table)


def _write_table(session: Session, table: Table, archive: zipfile.ZipFile) -> TableCopy:
    digest, rows = sha256(), 0
    query = select(table).order_by(*table.primary_key).execution_options(yield_per=CHUNK)
    with archive.open(f"{table.name}.jsonl", "w", force_zip64=True) as lines:
        for row in session.execute(query):
            line = json.dumps(
                [_encode(value, column) for value, column in zip(row, table.columns, strict=True)]
            )
            digest.update(encoded := f"{line}\n".encode())
            lines.write(encoded)
            rows += 1
    return TableCopy(tuple(table.columns.keys()), rows, digest.hexdigest())


def _read_table(session: Session, table: Table, copy: TableCopy, archive: zipfile.ZipFile) -> None:
    # A row may refer to a later one of its table: such columns are filled when all rows are there.
    own = [key.parent.name for key in table.foreign_keys if key.column.table is table]
    later: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    columns = [table.columns[name] for name in copy.columns]
    keys = [column.name for column in table.primary_key]
    for line in _lines(archive, table.name):
        values = zip(json.loads(line), columns, strict=True)
        row = {column.name: _decode(value, column) for value, column in values}
        if any(row[name] is not None for name in own):
            later.append({f"_{name}": row[name] for name in (*keys, *own)})
            row |= dict.fromkeys(own)
        rows.append(row)
        if len(rows) == CHUNK:
            session.execute(insert(table), rows)
            rows.clear()
    if rows:
        session.execute(insert(table), rows)
    if later:
        same = [table.columns[name] == bindparam(f"_{name}") for name in keys]
        filled: dict[str, Any] = {name: bindparam(f"_{name}") for name in own}
        session.connection().execute(update(table).where(*same).values(filled), later)
    _advance_sequences(session, table)


def _advance_sequences(session: Session, table: Table) -> None:
    """Lets PostgreSQL's next id follow the largest; SQLite does so itself."""
    if session.get_bind().dialect.name != "postgresql":
        return
    for column in table.primary_key:
        names = {"of": f'"{table.name}"', "called": column.name}
        sequence = session.scalar(text("select pg_get_serial_sequence(:of, :called)"), names)
        largest = session.scalar(select(func.max(column))) if sequence else None
        if largest is not None:
            session.execute(text("select setval(:sequence, :at)"), {"sequence": sequence, "at": largest})


def _encode(value: Any, column: Column[Any]) -> Any:
    if value is None:
        return None
    if isinstance(column.type, LargeBinary):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime):  # SQLite drops the zone
        return (value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)).isoformat()
    return value


def _decode(value: Any, column: Column[Any]) -> Any:
    if value is None:
        return None
    if isinstance(column.type, LargeBinary):
        return base64.b64decode(value)
    return datetime.fromisoformat(value) if isinstance(column.type, DateTime) else value


@contextmanager
def _new_file(path: Path) -> Iterator[Any]:
    """A file that gets its name once it is complete and on disk."""
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            try:
                yield file
                file.flush()
                os.fsync(file.fileno())
                Path(file.name).rename(path)
            except BaseException:
                Path(file.name).unlink(missing_ok=True)
                raise
    except FileNotFoundError as error:
        raise UsageError(f"there is no folder {path.parent}; make it, or name another file") from error


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except FileNotFoundError as error:
        raise UsageError(f"there is no file {path}") from error
    except (zipfile.BadZipFile, EOFError) as error:
        raise UsageError(f"{path} is damaged or no backup: {error}; take another one") from error


def _read_manifest(archive: zipfile.ZipFile, path: Path) -> Manifest:
    try:
        manifest = TypeAdapter(Manifest).validate_json(archive.read(MANIFEST))
    except (KeyError, ValidationError) as error:
        raise UsageError(
            f"{path} is no backup of Assay: its {MANIFEST} is missing or does not fit"
        ) from error
    if manifest.format != FORMAT or manifest.revision not in schema.revisions():
        raise UsageError(
            f"{path} was made by a newer version of Assay (revision {manifest.revision}); "
            "install that version"
        )
    return manifest


def _lines(archive: zipfile.ZipFile, table: str) -> Iterator[bytes]:
    with archive.open(f"{table}.jsonl") as lines:
        yield from lines


def problems(database: Database) -> Sequence[str]:
    """What is wrong with the database; empty if it is whole.

    Checks the revision, the tables against the models, the engine's own integrity, foreign keys, and that
    every row can be read.
    """
    if not database.is_migrated():
        found = database.revision()
        return [f"its revision is {found or 'none'}, not {schema.revisions()[-1]}; run `assay db migrate`"]
    with database.reading() as session:
        found_problems = schema.differences(session.connection())
        if database.is_sqlite:
            lines = session.scalars(text("pragma integrity_check")).all()
            found_problems += [f"integrity: {line}" for line in lines if line != "ok"]
            for row in session.execute(text("pragma foreign_key_check")):
                found_problems.append(f"row {row[1]} of {row[0]} refers to a missing row of {row[2]}")
        else:
            for name in session.scalars(
                text("select conname from pg_constraint where contype = 'f' and not convalidated")
            ):
                found_problems.append(f"the foreign key {name} is not validated")
        for table in _tables(session):
            for _ in session.execute(select(table).execution_options(yield_per=CHUNK)):
                pass
    return found_problems
