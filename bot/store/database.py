"""The one place that opens the database.

Every step of Assay reads rows and writes rows in one transaction, so there are two ways to
get a session: `with database.transaction() as session`, and `with database.reading() as session`
for those that only look. Trouble with the database itself, such as a full disk, leaves both as an
`InfrastructureError`; the other rooms never see SQLAlchemy's own errors.
"""

from __future__ import annotations

import functools
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import URL, Connection, Dialect, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DatabaseError, DisconnectionError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import Session, sessionmaker
from sqlalchemy.pool import ConnectionPoolEntry

from bot.errors import InfrastructureError, SettingsError

BUSY_TIMEOUT_S = 30  # how long a writer waits for another before the database gives up
#: How long a writer may do nothing before PostgreSQL ends it, and others have their turn: a lease's length.
IDLE_TIMEOUT_S = 60
#: Any number that no other program uses for a lock in the same PostgreSQL database, nor our migrations.
_WRITE_LOCK_ID = 1095979863
#: A connection that was idle for so many seconds is tried before it is used. Whoever works all the time meets
#: a server that starts again at work anyhow; to try each time is a tenth of all that is asked of it.
PING_AFTER_IDLE_S = 1.0
CHECKPOINT_PAGES = 16_384  # 64 MiB of log, if `checkpoint` is not called


def now() -> datetime:
    """The present, in UTC."""
    return datetime.now(UTC)


class Database:
    """The tables behind one URL; SQLite in WAL mode by default, PostgreSQL by setting.

    Opens no connection yet. Raises SettingsError: the URL is wrong or its driver is not installed;
    InfrastructureError: the folder for the file cannot be made.
    """

    def __init__(self, url: str) -> None:
        self.url = _parse(url)
        # We begin transactions ourselves, as on SQLite; a connection that was used last knows our statements.
        options: dict[str, Any] = {"isolation_level": "AUTOCOMMIT", "pool_use_lifo": True}
        if self.is_sqlite:
            _make_folder(self.url)
            options = {"connect_args": {"timeout": BUSY_TIMEOUT_S, "check_same_thread": False}}
        try:
            self.engine: Engine = create_engine(self.url, **options)
        except ModuleNotFoundError as error:
            raise SettingsError(
                f"ASSAY_DATABASE_URL needs the module {error.name!r}; "
                "install it with: pip install 'assay[postgresql]'"
            ) from error
        if self.is_sqlite:
            event.listen(self.engine, "connect", _set_pragmas)
            event.listen(self.engine, "begin", _begin_sqlite)
        else:
            event.listen(self.engine, "checkin", _record_use)
            event.listen(self.engine, "checkout", functools.partial(_ping_idle, self.engine.dialect))
            event.listen(self.engine, "begin", _begin_postgresql)
        self._sessions = self._sessionmaker(begin=_begin_exclusive(durable=True))
        self._quick_sessions = self._sessionmaker(begin=_begin_exclusive(durable=False), durable=False)
        # By default PostgreSQL would show a reader what others commit meanwhile.
        self._readers = self._sessionmaker(begin="begin isolation level repeatable read", read_only=True)
        self._autocommit_sessions = self._sessionmaker(begin="")
        # SQLite lets one writer in and makes the others poll, 100 ms at a time in the end. The threads
        # of this process queue here instead, and are woken at once. On PostgreSQL they take one connection.
        self._write_lock = threading.RLock()

    @property
    def is_sqlite(self) -> bool:
        """Whether the embedded database is used."""
        return self.url.get_backend_name() == "sqlite"

    def _sessionmaker(self, **options: object) -> sessionmaker[Session]:
        """Makes sessions whose transactions begin as the options say."""
        return sessionmaker(self.engine.execution_options(**options), expire_on_commit=False)

    @contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[Session]:
        """A session that commits at the end and rolls back on any exception.

        Writers take turns, on PostgreSQL as on SQLite: nothing that was read changes before the end, so that
        no row's change is lost under another's, and no two wait for each other. Transactions wait for nothing
        outside, so a turn takes milliseconds.

        A commit survives the death of the process, whatever kills it. It survives a power cut, and the death
        of PostgreSQL's server, if it is `durable`, or followed by one that is: both databases lose the end of
        their log, never its middle. What would only be done again need not wait for the disk.
        """
        sessions = self._sessions if durable else self._quick_sessions
        with self._translated_errors(), self._write_lock, sessions() as session, session.begin():
            if not self.is_sqlite:
                session.connection()  # takes the turn now, not with the first statement
            yield session

    @contextmanager
    def autocommit(self) -> Iterator[Session]:
        """A session for one statement, which adds rows that no other process changes, and is durable.

        On PostgreSQL it waits for no turn, and the statement is a transaction of its own: one message and its
        answer instead of three.
        """
        if self.is_sqlite:
            with self.transaction() as session:
                yield session
        else:
            with self._translated_errors(), self._autocommit_sessions() as session:
                yield session

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A session that only reads, from one snapshot, and waits for no writer."""
        with self._translated_errors(), self._readers() as session:
            yield session

    def migrate(self) -> None:
        """Brings the tables up to date; safe to call at every start, by several processes at once."""
        config = migrations()
        config.attributes["connection"] = self.engine
        with self._translated_errors(), self._write_lock:
            command.upgrade(config, "head")

    def is_migrated(self) -> bool:
        """Whether the tables are those that this version of Assay works on."""
        with self._translated_errors(), self.engine.execution_options(read_only=True).connect() as connection:
            return MigrationContext.configure(connection).get_current_revision() == _head_revision()

    def checkpoint(self) -> None:
        """Moves SQLite's log into its file, beside readers and writers; a service does so now and then.

        By default the commit that fills the log does it, and its caller waits for the disk, 150 ms here.
        """
        if not self.is_sqlite:
            return
        with self._translated_errors():
            connection = self.engine.raw_connection()
            try:
                connection.cursor().execute("pragma wal_checkpoint(passive)")
            finally:
                connection.close()

    def ping(self) -> None:
        """Raises InfrastructureError if the database cannot be read."""
        with self._translated_errors(), self.engine.execution_options(read_only=True).connect() as connection:
            connection.execute(text("select 1"))

    def close(self) -> None:
        """Closes every connection."""
        self.engine.dispose()

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except DatabaseError as error:
            # Its other subclasses (IntegrityError, ProgrammingError, ...) are bugs of ours, unless PostgreSQL
            # has ended the connection: to one whose process was stopped for long in its turn it says so.
            is_infrastructure = type(error) in (DatabaseError, InterfaceError, OperationalError)
            if not is_infrastructure and not error.connection_invalidated:
                raise
            raise self._database_error(str(error.orig)) from error
        except PoolTimeout as error:
            raise self._database_error("every connection is in use") from error

    def _database_error(self, why: str) -> InfrastructureError:
        return InfrastructureError(
            f"the database {self.url.render_as_string()} does not work: {why}; "
            "check ASSAY_DATABASE_URL, the disk and its permissions"
        )


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
        if parsed.drivername == "postgresql":  # SQLAlchemy's own choice differs between its versions
            parsed = parsed.set(drivername="postgresql+psycopg")
        parsed.get_dialect()
    except ArgumentError as error:
        raise SettingsError(
            "ASSAY_DATABASE_URL is no database's address; "
            "write sqlite:///PATH or postgresql://USER:PASSWORD@HOST/NAME"
        ) from error
    except ModuleNotFoundError:
        pass  # create_engine meets it again and says what to install
    return parsed


def missing_file(url: str) -> Path | None:
    """The file of the embedded database at this address where it is not there; `Database` would make it."""
    parsed = _parse(url)
    file = Path(parsed.database) if parsed.get_backend_name() == "sqlite" and parsed.database else None
    return None if file is None or file.exists() else file


def _make_folder(url: URL) -> None:
    if not url.database:
        return
    folder = Path(url.database).parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InfrastructureError(
            f"cannot make the folder {folder}: {error.strerror}; check ASSAY_DATA_DIR and its permissions"
        ) from error


def migrations() -> Config:
    """Alembic's configuration; the engine is to be put into its `attributes["connection"]`."""
    config = Config()
    # Alembic reads its options through configparser, to which % is special.
    folder = str(Path(__file__).parent / "migrations").replace("%", "%%")
    config.set_main_option("script_location", folder)
    return config


@functools.cache
def _head_revision() -> str | None:
    """The newest revision of this version of Assay; /readyz asks for it all the time."""
    return ScriptDirectory.from_config(migrations()).get_current_head()


def _set_pragmas(connection: sqlite3.Connection, _record: object) -> None:
    # pysqlite opens transactions by itself, late; we open them in `_begin` instead.
    connection.isolation_level = None
    cursor = connection.cursor()
    _use_wal(cursor)
    cursor.execute(f"pragma wal_autocheckpoint={CHECKPOINT_PAGES}")
    cursor.execute("pragma foreign_keys=on")
    cursor.execute("pragma journal_size_limit=67108864")
    cursor.close()


def _use_wal(cursor: sqlite3.Cursor) -> None:
    """Switches a new file to WAL; SQLite does not wait for another process that is doing the same."""
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            cursor.execute("pragma journal_mode=wal")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def _begin_sqlite(connection: Connection) -> None:
    # A reader that becomes a writer half-way fails at once with "database is locked"; taking the
    # write lock first makes it wait instead.
    options = connection.get_execution_options()
    if options.get("read_only", False):
        connection.exec_driver_sql("begin")
        return
    level = "full" if options.get("durable", True) else "normal"
    connection.exec_driver_sql(f"pragma synchronous={level}")
    connection.exec_driver_sql("begin immediate")


def _begin_postgresql(connection: Connection) -> None:
    begin = connection.get_execution_options().get("begin", "begin isolation level read committed")
    if begin:
        connection.exec_driver_sql(begin)


def _begin_exclusive(*, durable: bool) -> str:
    """Begins a transaction on PostgreSQL that is alone, in one message."""
    return "; ".join(
        (
            "begin isolation level read committed",
            *(() if durable else ("set local synchronous_commit = off",)),
            f"set local lock_timeout = '{BUSY_TIMEOUT_S * 1000:.0f}ms'",
            f"set local idle_in_transaction_session_timeout = '{IDLE_TIMEOUT_S * 1000:.0f}ms'",
            f"select pg_advisory_xact_lock({_WRITE_LOCK_ID})",
        )
    )


def _record_use(_connection: Any, record: ConnectionPoolEntry) -> None:
    record.info["used"] = time.monotonic()


def _ping_idle(dialect: Dialect, connection: Any, record: ConnectionPoolEntry, _proxy: Any) -> None:
    """Has the pool open another connection where this one, idle for a while, has died."""
    used = record.info.get("used")
    if used is None or time.monotonic() - used < PING_AFTER_IDLE_S:
        return
    try:
        dialect.do_ping(connection)
    except dialect.loaded_dbapi.Error as error:
        raise DisconnectionError from error
