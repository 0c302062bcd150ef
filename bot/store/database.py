"""Opens the database and its transactions.

Every step reads and writes rows in one transaction: `with database.transaction() as session`, or `with
database.reading() as session` for read-only work. Failures of the database itself, such as a full disk, raise
`InfrastructureError`; other packages never see SQLAlchemy's errors.
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

from sqlalchemy import URL, Connection, Dialect, Engine, create_engine, event, func, make_url, select
from sqlalchemy.exc import ArgumentError, DatabaseError, DisconnectionError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import Session, sessionmaker
from sqlalchemy.pool import ConnectionPoolEntry

from bot.errors import InfrastructureError, SettingsError
from bot.store import schema

BUSY_TIMEOUT_S = 30  # how long a writer waits for another before it fails
#: How often a writer on SQLite looks whether the other processes' are done; transactions take some of it.
POLL_S = 0.001
#: PostgreSQL ends a writer that is idle for this long, so that others can proceed: a lease's length.
IDLE_TIMEOUT_S = 60
#: An arbitrary advisory lock id, unlike that of the migrations.
_WRITE_LOCK_ID = 1095979863
#: A connection idle for this many seconds is pinged before use. Busy connections detect a restart of the
#: server anyway, and a ping each time costs a tenth of all queries.
PING_AFTER_IDLE_S = 1.0
#: The channel of PostgreSQL on which processes wake each other's workers.
CHANNEL = "assay_work"
CHECKPOINT_PAGES = 16_384  # 64 MiB of log, unless `checkpoint` is called


def now() -> datetime:
    """The current time, in UTC."""
    return datetime.now(UTC)


class Database:
    """The tables behind one URL; SQLite in WAL mode by default, PostgreSQL by setting.

    Opens no connection yet. Raises SettingsError if the URL is wrong or its driver is not installed,
    InfrastructureError if the folder of the file cannot be created.
    """

    def __init__(self, url: str) -> None:
        self.url = _parse(url)
        # We begin transactions ourselves, as on SQLite. LIFO: the last used connection has our prepared
        # statements.
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
        # By default PostgreSQL shows a reader what others commit meanwhile.
        self._readers = self._sessionmaker(begin="begin isolation level repeatable read", read_only=True)
        self._autocommit_sessions = self._sessionmaker(begin="")
        # SQLite allows one writer; others poll. Threads of this process queue here instead and are woken at
        # once. On PostgreSQL they share one connection.
        self._write_lock = threading.RLock()

    @property
    def is_sqlite(self) -> bool:
        """Whether SQLite is used."""
        return self.url.get_backend_name() == "sqlite"

    def _sessionmaker(self, **options: object) -> sessionmaker[Session]:
        """Makes sessions whose transactions begin as the options say."""
        return sessionmaker(self.engine.execution_options(**options), expire_on_commit=False)

    @contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[Session]:
        """A session that commits at the end and rolls back on any exception.

        Writers are serialized, on PostgreSQL as on SQLite: nothing that was read changes before the end, so
        there are no lost updates and no deadlocks. Transactions do no I/O, so they take milliseconds.

        A commit survives the death of the process. It survives a power cut, or the death of PostgreSQL's
        server, if it is `durable` or followed by a durable one: both databases lose only the end of their
        log. Work that would merely be repeated need not wait for the disk.
        """
        sessions = self._sessions if durable else self._quick_sessions
        with self._translated_errors(), self._write_lock, sessions() as session, session.begin():
            if not self.is_sqlite:
                session.connection()  # takes the lock now, not with the first statement
            yield session

    @contextmanager
    def autocommit(self) -> Iterator[Session]:
        """A session for one durable statement, which adds rows that no other process changes.

        On PostgreSQL it takes no lock and is its own transaction: one round trip instead of three.
        """
        if self.is_sqlite:
            with self.transaction() as session:
                yield session
        else:
            with self._translated_errors(), self._autocommit_sessions() as session:
                yield session

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A read-only session on one snapshot; does not wait for writers."""
        with self._translated_errors(), self._readers() as session:
            yield session

    def notify(self, name: str) -> None:
        """Wakes the workers called `name` of other processes (`bot.store.notifications`); SQLite has none."""
        if not self.is_sqlite:
            with self.autocommit() as session:
                session.execute(select(func.pg_notify(CHANNEL, name)))

    def migrate(self, revision: str = "head") -> None:
        """Migrates to a revision; safe at every start and in several processes at once.

        An older revision is for tests and for backups; "base" drops all tables.
        """
        current = self.revision()
        with self._translated_errors(), self._write_lock:
            schema.migrate(self.engine, current, revision)

    def revision(self) -> str | None:
        """The revision of the tables; None if there are none."""
        with self._translated_errors(), self.engine.execution_options(read_only=True).connect() as connection:
            return schema.current_revision(connection)

    def is_migrated(self) -> bool:
        """Whether the tables are at this version's revision."""
        return self.revision() == schema.revisions()[-1]

    def checkpoint(self) -> None:
        """Copies SQLite's log into its file, beside readers and writers; a service calls it periodically.

        By default the commit that fills the log does it, and its caller waits for the disk (measured: 150
        ms).
        """
        if not self.is_sqlite:
            return
        with self._translated_errors():
            connection = self.engine.raw_connection()
            try:
                connection.cursor().execute("pragma wal_checkpoint(passive)")
            finally:
                connection.close()

    def close(self) -> None:
        """Closes every connection."""
        self.engine.dispose()

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except DatabaseError as error:
            # Its other subclasses (IntegrityError, ProgrammingError, ...) are our bugs, unless PostgreSQL
            # closed the connection, as it does to a process that was stopped during its transaction.
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
        if parsed.drivername == "postgresql":  # SQLAlchemy's default differs between its versions
            parsed = parsed.set(drivername="postgresql+psycopg")
        parsed.get_dialect()
    except ArgumentError as error:
        raise SettingsError(
            "ASSAY_DATABASE_URL is no database's address; "
            "write sqlite:///PATH or postgresql://USER:PASSWORD@HOST/NAME"
        ) from error
    except ModuleNotFoundError:
        pass  # create_engine raises it again and names the missing package
    return parsed


def missing_file(url: str) -> Path | None:
    """The path of a SQLite database that does not exist yet, else None; `Database` would create it."""
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


def _set_pragmas(connection: sqlite3.Connection, _record: object) -> None:
    # pysqlite begins transactions itself, too late; `_begin` does it instead.
    connection.isolation_level = None
    cursor = connection.cursor()
    _use_wal(cursor)
    cursor.execute(f"pragma wal_autocheckpoint={CHECKPOINT_PAGES}")
    cursor.execute("pragma foreign_keys=on")
    cursor.execute("pragma journal_size_limit=67108864")
    cursor.close()


def _use_wal(cursor: sqlite3.Cursor) -> None:
    """Switches a new file to WAL; SQLite does not wait for another process that does the same."""
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
    # A reader that becomes a writer half-way fails at once with "database is locked". Taking the write lock
    # first makes it wait.
    options = connection.get_execution_options()
    if options.get("read_only", False):
        connection.exec_driver_sql("begin")
        return
    if not options.get("foreign_keys", True):
        # A migration replaces tables by changed copies; dropping one would violate the references to it. The
        # pragma has no effect in a transaction.
        connection.exec_driver_sql("pragma foreign_keys=off")
    level = "full" if options.get("durable", True) else "normal"
    connection.exec_driver_sql(f"pragma synchronous={level}")
    _begin_immediate(connection)


def _begin_immediate(connection: Connection) -> None:
    """Waits for the write lock, looking each POLL_S: SQLite itself would in the end look each 0.1 s."""
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    connection.exec_driver_sql("pragma busy_timeout=0")
    try:
        while True:
            try:
                connection.exec_driver_sql("begin immediate")
            except OperationalError as error:
                code = getattr(error.orig, "sqlite_errorcode", None)
                if code != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(POLL_S)
            else:
                return
    finally:
        connection.exec_driver_sql(f"pragma busy_timeout={BUSY_TIMEOUT_S * 1000}")


def _begin_postgresql(connection: Connection) -> None:
    begin = connection.get_execution_options().get("begin", "begin isolation level read committed")
    if begin:
        connection.exec_driver_sql(begin)


def _begin_exclusive(*, durable: bool) -> str:
    """Begins an exclusive transaction on PostgreSQL in one message."""
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
    """Makes the pool open a new connection if this one died while idle."""
    used = record.info.get("used")
    if used is None or time.monotonic() - used < PING_AFTER_IDLE_S:
        return
    try:
        dialect.do_ping(connection)
    except dialect.loaded_dbapi.Error as error:
        raise DisconnectionError from error
