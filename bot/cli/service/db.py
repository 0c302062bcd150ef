"""Migrate, back up, restore and check the service's database."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import click

from bot.cli.common.options import json_option
from bot.cli.exits import Exit
from bot.data_lock import DataLock
from bot.errors import UsageError
from bot.settings import load_settings
from bot.store import Database, backup
from bot.store.database import missing_file
from bot.store.schema import revisions
from bot.terminal import echo

_file = click.argument("file", type=click.Path(path_type=Path, dir_okay=False))


@click.group()
def command() -> None:
    """Migrate, back up, restore and check the service's database.

    The database is that of ASSAY_DATABASE_URL. A backup of one engine can be restored on the other.
    """


@command.command()
@json_option
def migrate(as_json: bool) -> Exit:
    """Migrate the tables to this version's revision; `assay serve` does it at its start, too."""
    with _opened(exclusive=True) as database:
        before = database.revision()
        database.migrate()
    result = {"before": before, "revision": revisions()[-1]}
    if as_json:
        echo(json.dumps(result))
    elif before == revisions()[-1]:
        echo(f"the tables are at revision {before} already")
    else:
        echo(f"migrated from {before or 'no tables'} to revision {revisions()[-1]}")
    return Exit.OK


@command.command(name="backup")
@_file
@json_option
def create(file: Path, as_json: bool) -> Exit:
    """Write a consistent copy of all tables to FILE; the service may be running."""
    with _opened(existing=True) as database:
        _print(backup.create(database, file), f"written to {file}", as_json)
    return Exit.OK


@command.command()
@_file
@json_option
def restore(file: Path, as_json: bool) -> Exit:
    """Fill an empty database from FILE and migrate it; stop the service first."""
    with _opened(exclusive=True) as database:
        _print(backup.restore(database, file), f"restored from {file}", as_json)
    return Exit.OK


@command.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), required=False)
@json_option
def check(file: Path | None, as_json: bool) -> Exit:
    """Check the database, or the backup FILE; exit code 1 if something is wrong with the database.

    Compares the tables with this version's, asks the engine for its own check, and reads every row.
    """
    if file is not None:
        _print(backup.verify(file), f"in {file}, undamaged", as_json)
        return Exit.OK
    with _opened(existing=True) as database:
        found = backup.problems(database)
    if as_json:
        echo(json.dumps({"problems": found}))
    else:
        for line in found or ["the database is whole"]:
            echo(line)
    return Exit.FOUND if found else Exit.OK


@contextmanager
def _opened(*, existing: bool = False, exclusive: bool = False) -> Iterator[Database]:
    """The service's database.

    existing   raises UsageError if there is none
    exclusive  raises InfrastructureError if a service with an embedded database runs
    """
    settings = load_settings()
    missing = missing_file(settings.database_url)
    if existing and missing is not None:
        raise UsageError(f"no service database at {missing}; set ASSAY_DATA_DIR to its data folder")
    with ExitStack() as stack:
        if exclusive and settings.database_url.startswith("sqlite:"):
            lock = DataLock(settings.data_dir)
            lock.acquire()
            stack.callback(lock.release)
        database = Database(settings.database_url)
        stack.callback(database.close)
        yield database


def _print(manifest: backup.Manifest, done: str, as_json: bool) -> None:
    rows = {name: copy.rows for name, copy in manifest.tables.items()}
    if as_json:
        created = manifest.created_at.isoformat()
        echo(json.dumps({"revision": manifest.revision, "created_at": created, "rows": rows}))
    else:
        echo(f"{sum(rows.values())} rows of {len(rows)} tables, revision {manifest.revision}, {done}")
