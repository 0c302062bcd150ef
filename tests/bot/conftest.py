"""Fixtures of the control plane's tests."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import httpx
import pytest
import uvicorn
from fastapi import FastAPI

Serving = Callable[[FastAPI], AbstractContextManager[httpx.Client]]


class _Server(uvicorn.Server):
    """Tells when it has started, or has given up."""

    def __init__(self, app: FastAPI) -> None:
        super().__init__(uvicorn.Config(app, lifespan="on", log_config=None, http="httptools"))
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
                assert server.decided.wait(60)
                assert server.started, "the application did not start"
                host, port = listener.getsockname()
                with httpx.Client(base_url=f"http://{host}:{port}", timeout=60) as client:
                    yield client
            finally:
                server.should_exit = True
                thread.join(60)
            assert not thread.is_alive()

    return serve
