"""The one place that opens the database.

Every step of Assay reads rows and writes rows in one transaction (DESIGN 3), so there are two ways to
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
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import URL, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DatabaseError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import Session, sessionmaker

from bot.errors import InfrastructureError, SettingsError

BUSY_TIMEOUT_S = 30  # how long a writer waits for another before the database gives up
#: How long a writer may do nothing before PostgreSQL ends it, and others have their turn: a lease's length.
IDLE_TIMEOUT_S = 60
#: Any number that no other program uses for a lock in the same PostgreSQL database, nor our migrations.
_TURN = text(
    "select set_config('lock_timeout', :busy, true), "
    "set_config('idle_in_transaction_session_timeout', :idle, true), pg_advisory_xact_lock(1095979863)"
)
CHECKPOINT_PAGES = 16_384  # 64 MiB of log, should nobody call `checkpoint`


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
        options: dict[str, Any] = {"pool_pre_ping": True}
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
            event.listen(self.engine, "begin", _begin)
        self._sessions = sessionmaker(self.engine, expire_on_commit=False)
        quick = self.engine.execution_options(durable=False)
        self._quick_sessions = sessionmaker(quick, expire_on_commit=False)
        # PostgreSQL would show a reader what others commit meanwhile.
        snapshot: dict[str, Any] = {} if self.is_sqlite else {"isolation_level": "REPEATABLE READ"}
        reader = self.engine.execution_options(read_only=True, **snapshot)
        self._readers = sessionmaker(reader, expire_on_commit=False)
        # SQLite lets one writer in and makes the others poll, 100 ms at a time in the end. The threads
        # of this process queue here instead, and are woken at once. On PostgreSQL they take one connection.
        self._turn = threading.RLock()

    @property
    def is_sqlite(self) -> bool:
        """Whether the embedded database is used."""
        return self.url.get_backend_name() == "sqlite"

    @contextmanager
    def transaction(self, *, durable: bool = True, alone: bool = True) -> Iterator[Session]:
        """A session that commits at the end and rolls back on any exception.

        Writers take turns, on PostgreSQL as on SQLite: nothing that was read changes before the end, so that
        no row's change is lost under another's, and no two wait for each other. Transactions ask nobody
        outside, so a turn is milliseconds. Whoever only adds rows that nobody else changes need not be
        `alone` on PostgreSQL.

        A commit survives the death of the process, whatever kills it. It survives a power cut if it is
        `durable`, or followed by one that is: SQLite loses the end of its log, never its middle. What
        would only be done again need not wait for the disk.
        """
        sessions = self._sessions if durable else self._quick_sessions
        turn = self._turn if alone or self.is_sqlite else nullcontext()
        with self._explained(), turn, sessions() as session, session.begin():
            if alone and not self.is_sqlite:
                limits = {"busy": f"{BUSY_TIMEOUT_S * 1000:.0f}ms", "idle": f"{IDLE_TIMEOUT_S}s"}
                session.execute(_TURN, limits)
            yield session

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A session that only reads, from one snapshot, and waits for no writer."""
        with self._explained(), self._readers() as session:
            yield session

    def migrate(self) -> None:
        """Brings the tables up to date; safe to call at every start, by several processes at once."""
        config = migrations()
        config.attributes["connection"] = self.engine
        with self._explained(), self._turn:
            command.upgrade(config, "head")

    def is_migrated(self) -> bool:
        """Whether the tables are those that this version of Assay works on."""
        with self._explained(), self.engine.execution_options(read_only=True).connect() as connection:
            return MigrationContext.configure(connection).get_current_revision() == _newest()

    def checkpoint(self) -> None:
        """Moves SQLite's log into its file, beside readers and writers; a service does so now and then.

        By default the commit that fills the log does it, and its caller waits for the disk, 150 ms here.
        """
        if not self.is_sqlite:
            return
        with self._explained():
            connection = self.engine.raw_connection()
            try:
                connection.cursor().execute("pragma wal_checkpoint(passive)")
            finally:
                connection.close()

    def ping(self) -> None:
        """Raises InfrastructureError if the database cannot be read."""
        with self._explained(), self.engine.execution_options(read_only=True).connect() as connection:
            connection.execute(text("select 1"))

    def close(self) -> None:
        """Closes every connection."""
        self.engine.dispose()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except DatabaseError as error:
            # Its other subclasses (IntegrityError, ProgrammingError, ...) are bugs of ours.
            if type(error) not in (DatabaseError, InterfaceError, OperationalError):
                raise
            raise self._trouble(str(error.orig)) from error
        except PoolTimeout as error:
            raise self._trouble("every connection is in use") from error

    def _trouble(self, why: str) -> InfrastructureError:
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
def _newest() -> str | None:
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


def _begin(connection: Any) -> None:
    # A reader that becomes a writer half-way fails at once with "database is locked"; taking the
    # write lock first makes it wait instead.
    options = connection.get_execution_options()
    if options.get("read_only", False):
        connection.exec_driver_sql("begin")
        return
    level = "full" if options.get("durable", True) else "normal"
    connection.exec_driver_sql(f"pragma synchronous={level}")
    connection.exec_driver_sql("begin immediate")
