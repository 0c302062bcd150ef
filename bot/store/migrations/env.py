"""Run by Alembic: brings the tables to a revision, in one transaction, one process at a time.

`Database.migrate` hands its engine over in `config.attributes["connection"]`.
"""

from __future__ import annotations

from typing import Any, Literal

from alembic import context
from sqlalchemy import Connection, Engine, text

from bot.store.models import Base, UtcDateTime

#: Any number that no other program uses for a lock in the same PostgreSQL database.
LOCK = 0x41535359


def render(kind: str, item: object, _autogenerate: Any) -> str | Literal[False]:
    """Migrations must outlive the models: they name no type of ours."""
    return "sa.DateTime(timezone=True)" if kind == "type" and isinstance(item, UtcDateTime) else False


def run(connection: Connection) -> None:
    """Migrates over a connection whose transaction the caller ends.

    The second of two processes that start at once waits for the first to commit, then finds nothing
    left to do: SQLite's transactions here begin by taking the write lock (see `Database`), PostgreSQL
    is given a lock to wait for.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("select pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        transactional_ddl=True,
        render_as_batch=True,  # SQLite alters a table by copying it
        compare_type=True,
        render_item=render,
    )
    context.run_migrations()


engine: Engine = context.config.attributes["connection"]
with engine.begin() as opened:
    run(opened)
