"""Fixtures of the control plane's tests.

ASSAY_TEST_POSTGRESQL=1 runs them on PostgreSQL: each SQLite file that a test names becomes a database of a
server that is started for the tests.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog
import uvicorn
from fastapi import FastAPI
from sqlalchemy import URL, Engine, create_engine

from bot.connection_limits import LimitedProtocol
from bot.store import Database, database
from bot.store.models import Base
from tests.support import postgres

Serving = Callable[[FastAPI], AbstractContextManager[httpx.Client]]


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """A command that is called in this process sets its logs up; no later test may depend on that."""
    root = logging.getLogger()
    before = root.handlers[:], root.level
    yield
    root.handlers, root.level = before
    structlog.reset_defaults()


class _Server(uvicorn.Server):
    """Tells when it has started, or has given up."""

    def __init__(self, app: FastAPI) -> None:
        super().__init__(uvicorn.Config(app, lifespan="on", log_config=None, http=LimitedProtocol))
        self.decided = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.decided.set()


@pytest.fixture
def serving() -> Serving:
    """`with serving(app) as client`: the application under a real server on a port of its own."""

    @contextmanager
    def serve(app: FastAPI) -> Iterator[httpx.Client]:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            server = _Server(app)
            thread = threading.Thread(target=server.run, args=([listener],))
            thread.start()
            try:
                assert server.decided.wait(600)
                assert server.started, "the application did not start"
                host, port = listener.getsockname()
                with httpx.Client(base_url=f"http://{host}:{port}", timeout=600) as client:
                    yield client
            finally:
                server.should_exit = True
                thread.join(600)
            assert not thread.is_alive()

    return serve


@pytest.fixture(scope="session")
def server() -> Iterator[postgres.Server]:
    """A PostgreSQL server; skips where there can be none."""
    why = postgres.missing()
    if why:
        pytest.skip(why)
    with postgres.serving() as made:
        yield made


@pytest.fixture
def postgresql(server: postgres.Server, tmp_path: object) -> Iterator[str]:
    """The address of an empty PostgreSQL database."""
    yield server.database(str(tmp_path))
    server.drop_all()


@pytest.fixture
def shared(postgresql: str) -> Iterator[Database]:
    """A PostgreSQL database with all tables, for what several processes do to one."""
    made = Database(postgresql)
    made.migrate()
    yield made
    made.close()


@pytest.fixture(autouse=bool(os.environ.get("ASSAY_TEST_POSTGRESQL")))
def everything_on_postgresql(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Takes each SQLite file for the name of a PostgreSQL database."""
    made: postgres.Server = request.getfixturevalue("server")
    parse = database._parse
    engines: list[Engine] = []

    def on_server(url: str) -> URL:
        if not url.startswith("sqlite:////tmp/"):
            return parse(url)
        fresh = url not in made.made
        there = parse(made.database(url))
        if fresh and Path(url.removeprefix("sqlite:///")).exists():  # a copy of an empty database
            engine = create_engine(there)
            Base.metadata.create_all(engine)
            engine.dispose()
        return there

    def remember(*args: Any, **options: Any) -> Engine:
        engines.append(create_engine(*args, **options))
        return engines[-1]

    monkeypatch.setattr(database, "_parse", on_server)
    monkeypatch.setattr(database, "create_engine", remember)
    yield
    for engine in engines:
        engine.dispose()
    made.drop_all()
