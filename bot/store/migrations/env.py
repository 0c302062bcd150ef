"""Run by Alembic: migrates to a revision in one transaction, one process at a time.

`Database.migrate` passes its connection in `config.attributes["connection"]`.
"""

from __future__ import annotations

from typing import Any, Literal

from alembic import context
from sqlalchemy import Connection, Engine, text

from bot.errors import InternalError
from bot.store.models import Base, UtcDateTime

#: An arbitrary advisory lock id of PostgreSQL.
LOCK = 0x41535359


def render(kind: str, item: object, _autogenerate: Any) -> str | Literal[False]:
    """Renders our column types as plain ones: migrations must outlive the models."""
    return "sa.DateTime(timezone=True)" if kind == "type" and isinstance(item, UtcDateTime) else False


def run(connection: Connection) -> None:
    """Migrates over a connection whose transaction the caller ends.

    Of two processes that start at once, the second waits for the first to commit and then has nothing to do:
    SQLite's transactions take the write lock first (see `Database`), PostgreSQL takes an advisory lock.
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
    if connection.dialect.name == "sqlite":
        broken = connection.exec_driver_sql("pragma foreign_key_check").all()
        if broken:
            raise InternalError(f"a migration broke references between rows: {broken[:3]}")


engine: Engine = context.config.attributes["connection"]
with engine.execution_options(foreign_keys=False).connect() as opened:
    try:
        with opened.begin():
            run(opened)
    finally:
        if opened.dialect.name == "sqlite" and not opened.invalidated:
            # Not by SQLAlchemy, which would begin a transaction, in which the pragma has no effect.
            driver: Any = opened.connection.driver_connection
            driver.execute("pragma foreign_keys=on")
