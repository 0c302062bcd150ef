"""The one place that opens the database.

Every step of Assay reads rows and writes rows in one transaction (DESIGN 3), so there are two ways to
get a session: `with database.transaction() as session`, and `with database.reading() as session`
for those that only look.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import Engine, create_engine, event, make_url, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session, sessionmaker

from bot.errors import InfrastructureError

BUSY_TIMEOUT_S = 30  # how long a writer waits for another before SQLite gives up


def now() -> datetime:
    """The present, in UTC."""
    return datetime.now(UTC)


class Database:
    """The tables behind one URL; SQLite in WAL mode by default, PostgreSQL by setting."""

    def __init__(self, url: str) -> None:
        self.url = make_url(url)
        options: dict[str, Any] = {"pool_pre_ping": True}
        if self.is_sqlite:
            if self.url.database:
                Path(self.url.database).parent.mkdir(parents=True, exist_ok=True)
            options = {"connect_args": {"timeout": BUSY_TIMEOUT_S, "check_same_thread": False}}
        self.engine: Engine = create_engine(self.url, **options)
        if self.is_sqlite:
            event.listen(self.engine, "connect", _set_pragmas)
            event.listen(self.engine, "begin", _begin)
        self._sessions = sessionmaker(self.engine, expire_on_commit=False)
        reader = self.engine.execution_options(read_only=True)
        self._readers = sessionmaker(reader, expire_on_commit=False)

    @property
    def is_sqlite(self) -> bool:
        """Whether the embedded database is used."""
        return self.url.get_backend_name() == "sqlite"

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """A session that commits at the end and rolls back on any exception."""
        with self._sessions() as session, session.begin():
            yield session

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A session that only reads, from one snapshot, and waits for no writer."""
        with self._readers() as session:
            yield session

    def migrate(self) -> None:
        """Brings the tables up to date; safe to call at every start."""
        config = Config()
        config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
        config.attributes["connection"] = self.engine
        try:
            command.upgrade(config, "head")
        except OperationalError as error:
            raise InfrastructureError(
                f"cannot open the database {self.url.render_as_string()}: {error.orig}; "
                "check ASSAY_DATABASE_URL, the disk and its permissions"
            ) from error

    def ping(self) -> None:
        """Raises if the database cannot be read."""
        with self.engine.connect() as connection:
            connection.execute(text("select 1"))

    def close(self) -> None:
        """Closes every connection."""
        self.engine.dispose()


def _set_pragmas(connection: sqlite3.Connection, _record: object) -> None:
    # pysqlite opens transactions by itself, late; we open them in `_begin` instead.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute("pragma journal_mode=wal")
    cursor.execute("pragma synchronous=full")  # an acknowledged delivery survives a power cut
    cursor.execute("pragma foreign_keys=on")
    cursor.execute("pragma journal_size_limit=67108864")
    cursor.close()


def _begin(connection: Any) -> None:
    # A reader that becomes a writer half-way fails at once with "database is locked"; taking the
    # write lock first makes it wait instead.
    reads = connection.get_execution_options().get("read_only", False)
    connection.exec_driver_sql("begin" if reads else "begin immediate")
