"""Revisions of the tables: Alembic migrates from one to the next; a new SQLite file is made at the newest.

The migrations take half a second from the first to the last, which each new data folder would wait for.
`migrations/newest.sqlite.sql` holds the tables that they make; a test compares the two.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, inspect

from bot.store.models import Base

if TYPE_CHECKING:
    from alembic.config import Config

FOLDER = Path(__file__).parent / "migrations"
#: The statements that make all tables on SQLite, each ending in a semicolon and an empty line.
SCRIPT = FOLDER / "newest.sqlite.sql"
_END = ";\n\n"


@functools.cache
def revisions() -> tuple[str, ...]:
    """All revisions, oldest first; cached, since /readyz polls it. Each names the file of its migration."""
    return tuple(sorted(path.name.partition("_")[0] for path in (FOLDER / "versions").glob("[0-9]*.py")))


def migrations() -> Config:
    """Alembic's configuration; the caller sets `attributes["connection"]`."""
    from alembic.config import Config  # not needed where the tables are there

    config = Config()
    # Alembic reads its options through configparser, which expands %.
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    return config


def current_revision(connection: Connection) -> str | None:
    """The revision of the tables; None if there are none."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found: str | None = connection.exec_driver_sql("select version_num from alembic_version").scalar()
    return found


def migrate(engine: Engine, current: str | None, revision: str) -> None:
    """Migrates from the current revision to another one, "head" or "base"."""
    if revision == "head" and (current == revisions()[-1] or _create_tables(engine)):
        return
    from alembic import command

    config = migrations()
    config.attributes["connection"] = engine
    older = revision == "base" or (revision in revisions() and (current or "") > revision)
    (command.downgrade if older else command.upgrade)(config, revision)


def _create_tables(engine: Engine) -> bool:
    """Makes all tables in an empty SQLite file; False if it is another database, or has tables."""
    if engine.dialect.name != "sqlite":
        return False
    with engine.begin() as connection:  # takes the write lock: another process may be doing the same
        if connection.exec_driver_sql("select 1 from sqlite_master").first():
            return False
        for statement in SCRIPT.read_text(encoding="utf-8").split(_END):
            if statement.strip():
                connection.exec_driver_sql(statement)
    return True


def script(connection: Connection) -> str:
    """The statements that make an SQLite database's tables, as `SCRIPT` has them."""
    query = "select sql from sqlite_master where sql is not null order by rowid"
    revision = current_revision(connection)
    version = f"insert into alembic_version values ('{revision}')"  # noqa: S608  (a file's name)
    text = "".join(statement + _END for statement in [*connection.exec_driver_sql(query).scalars(), version])
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def differences(connection: Connection) -> list[str]:
    """How the tables differ from the models."""
    from alembic.autogenerate import compare_metadata
    from alembic.runtime.migration import MigrationContext

    context = MigrationContext.configure(connection, opts={"compare_type": True})
    return [f"schema: {difference}" for difference in compare_metadata(context, Base.metadata)]
