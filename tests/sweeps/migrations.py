"""Migrates data of every revision, and restores a backup of each, on SQLite and on PostgreSQL."""

from __future__ import annotations

import tempfile
from itertools import count
from pathlib import Path

from bot.store import Database
from bot.store.database import revisions
from tests.bot.store.test_backup import check_revision
from tests.support.postgres import serving


def main() -> None:
    """Prints a line for each revision that passed on both engines."""
    numbers = count()
    with tempfile.TemporaryDirectory() as made, serving() as server:
        folder = Path(made)
        for revision in revisions():
            for address in (
                lambda: f"sqlite:///{folder}/{next(numbers)}.db",
                lambda: server.database(str(next(numbers))),
            ):
                databases: list[Database] = []

                def make() -> Database:
                    databases.append(Database(address()))  # noqa: B023 - called in this round only
                    return databases[-1]  # noqa: B023

                check_revision(make, folder, revision)
                (folder / f"{revision}.zip").unlink()
                for database in databases:
                    database.close()
            print(revision, "migrated and restored", flush=True)


if __name__ == "__main__":
    main()
