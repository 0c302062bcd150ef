"""Migrates data of every revision, and restores a backup of each, on SQLite and on PostgreSQL."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from itertools import count
from pathlib import Path

from bot.store import Database
from bot.store.schema import revisions
from tests.bot.store.test_backup import check_revision
from tests.support.postgres import serving


def main() -> None:
    """Prints a line for each revision that passed on both engines."""
    numbers = count()
    with tempfile.TemporaryDirectory() as made, serving() as server:
        folder = Path(made)
        for revision in revisions():
            for engine in ("sqlite", "postgresql"):
                with ExitStack() as stack:

                    def make() -> Database:
                        name = str(next(numbers))
                        on_sqlite = engine == "sqlite"  # noqa: B023 - called in this round only
                        url = f"sqlite:///{folder}/{name}.db" if on_sqlite else server.database(name)
                        database = Database(url)
                        stack.callback(database.close)
                        return database

                    check_revision(make, folder, revision)
                (folder / f"{revision}.zip").unlink()
            print(revision, "migrated and restored", flush=True)


if __name__ == "__main__":
    main()
