"""A PostgreSQL server for tests: in a temporary folder, on a Unix socket there."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from sqlalchemy import create_engine, text

#: Debian and Ubuntu install the server programs outside of PATH.
_PLACES = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin")
#: No durability, since the folder is temporary.
_OPTIONS = (
    "-c listen_addresses= -c fsync=off -c full_page_writes=off -c max_connections=200 -c shared_buffers=16MB"
)


#: Set to run the tests of the control plane on PostgreSQL.
SWITCH = "ASSAY_TEST_POSTGRESQL"


def missing() -> str:
    """Why no server can be started; "" if one can."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "psycopg is not installed: pip install 'assay[postgresql]'"
    if _programs() is None:
        return "PostgreSQL's initdb and pg_ctl are not installed"
    if os.geteuid() == 0 and _user() is None:
        return "PostgreSQL does not run as root, and there is no user postgres"
    return ""


@dataclass
class Server:
    """A running server."""

    folder: Path
    made: dict[str, str] = field(default_factory=dict)  # key → database

    def url(self, name: str) -> str:
        """The URL of a database of this name."""
        return f"postgresql+psycopg://assay@/{name}?host={self.folder}"

    def database(self, key: str) -> str:
        """The URL of the database for a key, empty at first."""
        if key not in self.made:
            name = f"t{sha256(key.encode()).hexdigest()[:16]}"
            self._run(f"create database {name} template template0")
            self.made[key] = name
        return self.url(self.made[key])

    def restart(self) -> None:
        """Kills all processes of the server and starts it again: connections break, commits stay."""
        user, programs = _user() if os.geteuid() == 0 else None, _programs()
        assert programs is not None
        places = ("-D", self.folder / "data", "-l", self.folder / "log")
        _call(user, programs / "pg_ctl", *places, "-m", "immediate", "-w", "restart")

    def drop_all(self) -> None:
        """Drops the created databases."""
        for name in self.made.values():
            self._run(f"drop database {name} with (force)")
        self.made.clear()

    def _run(self, statement: str) -> None:
        engine = create_engine(self.url("postgres"), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text(statement))
        engine.dispose()


@contextmanager
def serving() -> Iterator[Server]:
    """A server during the block."""
    programs, user = _programs(), _user() if os.geteuid() == 0 else None
    assert programs is not None
    folder = Path(tempfile.mkdtemp(prefix="assay-pg-"))
    data, log = folder / "data", folder / "log"
    try:
        if user is not None:
            shutil.chown(folder, user)
        folder.chmod(0o711)
        _call(
            user,
            programs / "initdb",
            "-D",
            data,
            "-U",
            "assay",
            "-A",
            "trust",
            "--no-sync",
            "-E",
            "UTF8",
            "--locale=C",
        )
        options = f"{_OPTIONS} -k {folder}"
        _call(user, programs / "pg_ctl", "-D", data, "-l", log, "-w", "-o", options, "start")
        try:
            yield Server(folder)
        finally:
            _call(user, programs / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def addresses() -> Iterator[Callable[[Path], str]]:
    """Maps a data folder to its database: a SQLite file, or one of a server during the block."""
    if not os.environ.get(SWITCH):
        yield lambda folder: f"sqlite:///{folder}/assay.db"
        return
    with serving() as server:
        yield lambda folder: server.database(str(folder))


def _call(user: str | None, *command: str | Path) -> None:
    done = subprocess.run(
        [str(part) for part in command],
        user=user,
        cwd="/",
        env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "PGCTLTIMEOUT": "600"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL if {"start", "restart"} & {*command} else subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, (done.stdout or b"").decode(errors="replace")


def _programs() -> Path | None:
    """The folder of the newest server's programs."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    folders = [path for place in _PLACES for path in Path("/").glob(place.lstrip("/"))]
    return max((path for path in folders if (path / "initdb").exists()), default=None)


def _user() -> str | None:
    try:
        return pwd.getpwnam("postgres").pw_name
    except KeyError:
        return None
