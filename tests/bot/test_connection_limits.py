"""Connections of strangers: neither many nor slow ones keep deliveries out."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from sqlalchemy import text

from bot import connection_limits
from bot.app import create_app
from bot.store.models import Target, TargetState
from bot.webhooks import inbox_writer, request_body
from bot.webhooks.signature import sign
from tests.bot.conftest import Serving
from tests.bot.test_app import composed, settings_for

BODY = b'{"zen": "short"}'


@pytest.fixture
def client(tmp_path: Path, serving: Serving) -> Iterator[httpx.Client]:
    with serving(create_app(settings_for(tmp_path), services=composed())) as made:
        yield made


def deliver(client: httpx.Client, body: bytes = BODY, number: int = 1) -> int:
    headers = {
        "X-GitHub-Delivery": f"d-{number}",
        "X-GitHub-Event": "ping",
        "X-Hub-Signature-256": sign(b"s", body),
    }
    return client.post("/webhooks/github", content=body, headers=headers).status_code


def connect(client: httpx.Client, data: bytes) -> socket.socket:
    made = socket.create_connection((client.base_url.host, client.base_url.port or 80), timeout=60)
    made.sendall(data)
    return made


def send_slowly(to: socket.socket, data: bytes) -> None:
    for _ in range(1000):  # 20 s
        to.sendall(data)
        time.sleep(0.02)


def is_closed(by: socket.socket) -> bool:
    """Whether the server has closed a connection; waits for it."""
    try:
        return by.recv(1) == b""
    except ConnectionError:
        return True


def begun_body(length: int) -> bytes:
    head = f"POST /webhooks/github HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n"
    return f"{head}X-Hub-Signature-256: sha256={'0' * 64}\r\n\r\n".encode()


def test_half_open_connections_make_room(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limits, "MAX_CONNECTIONS", 8)
    monkeypatch.setattr(connection_limits, "HEAD_TIMEOUT_S", 3600.0)
    with ExitStack() as stack:
        half_open = [
            stack.enter_context(connect(client, b"POST /webhooks/github HTTP/1.1\r\n")) for _ in range(50)
        ]
        for number in range(5):
            assert deliver(client, number=number) == 202
        for oldest in half_open[:42]:
            assert is_closed(oldest)


def test_a_head_that_never_ends_is_cut_off(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limits, "HEAD_TIMEOUT_S", 0.2)
    with connect(client, b"GET / HTTP/1.1\r\nX: ") as slow, pytest.raises(ConnectionError):
        send_slowly(slow, b"x")


def test_a_head_of_megabytes_is_cut_off(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limits, "HEAD_TIMEOUT_S", 3600.0)
    with connect(client, b"GET / HTTP/1.1\r\n") as large, pytest.raises(ConnectionError):
        send_slowly(large, b"X: " + b"x" * 10_000 + b"\r\n")


def test_slow_bodies_share_a_budget_that_small_ones_need_not(
    tmp_path: Path, serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_body.BodyBudget, "__init__", lambda self: setattr(self, "free", 1_000_000))
    app = create_app(settings_for(tmp_path), services=composed())
    with serving(app) as client, ExitStack() as stack:
        for _ in range(20):
            slow = stack.enter_context(connect(client, begun_body(2_000_000)))
            slow.sendall(b"x" * 200_000)
        bodies = app.state.webhook_context.bodies
        deadline = time.monotonic() + 60
        while bodies.free > 100_000 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert 0 <= bodies.free <= 100_000
        assert deliver(client) == 202
        assert deliver(client, b'{"a": "' + b"x" * 900_000 + b'"}', 2) == 503
    assert bodies.free == 1_000_000


def test_a_body_that_dawdles_is_refused(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_body, "BASE_TIMEOUT_S", 0.2)
    with connect(client, begun_body(100)) as slow:
        assert slow.recv(4096).startswith(b"HTTP/1.1 408")


def test_not_ready_while_deliveries_cannot_be_stored(
    tmp_path: Path, serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = create_app(settings_for(tmp_path), services=composed())
    with serving(app) as client:
        database = app.state.service.database
        with database.transaction() as session:
            session.execute(text("alter table deliveries rename to elsewhere"))
        assert deliver(client) == 503
        ready = client.get("/readyz")
        assert ready.status_code == 503
        assert "cannot be stored" in ready.json()["problems"]["inbox-writer"]
        with database.transaction() as session:
            session.execute(text("alter table elsewhere rename to deliveries"))
        assert deliver(client) == 202
        assert client.get("/readyz").status_code == 200
        with database.transaction() as session:
            session.execute(text("alter table deliveries rename to elsewhere"))
        monkeypatch.setattr(inbox_writer, "FAILURE_SHOWN_S", 0.0)
        assert deliver(client, number=3) == 503
        assert client.get("/readyz").status_code == 200


@pytest.mark.parametrize("damage", ["drop table bugs", "update campaigns set config = '{'"])
def test_a_damaged_database_gives_a_page(tmp_path: Path, serving: Serving, damage: str) -> None:
    settings = settings_for(tmp_path).model_copy(update={"public_url": "https://assay.example.org"})
    app = create_app(settings, services=composed())
    with serving(app) as client:
        with app.state.service.database.transaction() as session:
            session.add(Target(name="octo/compiler", stable_name="octo/compiler", private=False,
                               state=TargetState.WATCHED.value))  # fmt: skip
            session.flush()
            session.execute(text("PRAGMA foreign_keys=off"))
            session.execute(text(damage))
        for path in ("/", "/repositories/octo/compiler"):
            answer = client.get(path)
            if answer.status_code != 200:
                assert answer.status_code in (500, 503)
                assert answer.text.startswith("Assay c")
        assert damage.startswith("update") or answer.status_code == 503
