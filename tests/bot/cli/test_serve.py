"""`assay serve` as a process of its own: bounds, signals, one for each folder, kill -9."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from bot.store import Database, inbox
from bot.webhooks.signature import sign
from tests.support.live_service import wait_for

SECRET = "s3cret"
LIMIT = 4096


@contextmanager
def serve(folder: Path, **variables: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A service in the folder; (its process, its address)."""
    with (
        open(folder / "log", "a") as log,
        subprocess.Popen(
            command("serve", "--port", "0"),
            env=environment(folder, **variables),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            output = re.search(r"http://[\d.]+:\d+", process.stdout.readline())
            assert output is not None, (folder / "log").read_text()
            yield process, output[0]
        finally:
            process.kill()


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "bot.cli", *arguments]


def environment(folder: Path, **variables: str) -> dict[str, str]:
    bare = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
    mine = {
        "ASSAY_DATA_DIR": str(folder),
        "ASSAY_WEBHOOK_SECRET": SECRET,
        "ASSAY_MAX_BODY_BYTES": str(LIMIT),
        "ASSAY_LOG_FORMAT": "json",
    }
    return bare | mine | variables


def headers(body: bytes, delivery: str) -> dict[str, str]:
    return {
        "Content-Type": "application/json",
        "X-GitHub-Delivery": delivery,
        "X-GitHub-Event": "ping",
        "X-Hub-Signature-256": sign(SECRET.encode(), body),
    }


def states(folder: Path) -> dict[str, int]:
    database = Database(f"sqlite:///{folder}/assay.db")
    with database.reading() as session:
        found = inbox.counts(session)
    database.close()
    return found


def test_stores_acknowledges_and_ends_well_on_sigterm(tmp_path: Path) -> None:
    body = b'{"hook_id": 1}'
    with serve(tmp_path) as (process, url):
        answer = httpx.post(f"{url}/webhooks/github", content=body, headers=headers(body, "d-1"))
        assert (answer.status_code, answer.json()) == (202, {"delivery": "d-1", "stored": True})
        assert httpx.get(f"{url}/readyz").status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(600) == 0
    assert sum(states(tmp_path).values()) == 1
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert all(line["level"] == "info" for line in lines), lines


def test_acknowledged_is_stored_even_if_killed_at_once(tmp_path: Path) -> None:
    body = b'{"hook_id": 1}'
    with serve(tmp_path) as (process, url):
        for number in range(20):
            answer = httpx.post(f"{url}/webhooks/github", content=body, headers=headers(body, f"d-{number}"))
            assert answer.status_code == 202
        process.kill()
        process.wait(600)
    assert sum(states(tmp_path).values()) == 20
    with serve(tmp_path) as (process, url):
        again = httpx.post(f"{url}/webhooks/github", content=body, headers=headers(body, "d-0"))
        assert again.json()["stored"] is False
        wait_for(lambda: states(tmp_path) == {"done": 20}, "what was pending to be read by the next service")


def exchange(url: str, head: str, chunks: list[bytes]) -> bytes:
    """Sends a request by hand, as far as the server lets us; its answer's first line."""
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=600) as connection:
        connection.sendall(head.encode())
        try:
            for chunk in chunks:
                connection.sendall(chunk)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it has answered and hung up
        answer = connection.recv(65536)
    return answer.split(b"\r\n", 1)[0]


def test_too_large_bodies_are_refused_as_soon_as_that_is_known(tmp_path: Path) -> None:
    start = "POST /webhooks/github HTTP/1.1\r\nHost: x\r\nX-Hub-Signature-256: sha256=" + "0" * 64 + "\r\n"
    chunk = b"800\r\n" + b"x" * 0x800 + b"\r\n"
    with serve(tmp_path) as (_, url):
        announced = exchange(url, f"{start}Content-Length: {LIMIT + 1}\r\n\r\n", [])
        assert announced.startswith(b"HTTP/1.1 413")
        # The last chunk never comes: waiting for it would wait for ever.
        counted = exchange(url, f"{start}Transfer-Encoding: chunked\r\n\r\n", [chunk] * 3)
        assert counted.startswith(b"HTTP/1.1 413")
        unsigned = start.replace("X-Hub-Signature-256", "X-Other")
        assert exchange(url, f"{unsigned}Content-Length: 9\r\n\r\n", []).startswith(b"HTTP/1.1 401")
    assert states(tmp_path) == {}


def test_a_second_service_says_who_is_there(tmp_path: Path) -> None:
    with serve(tmp_path) as (process, _):
        second = subprocess.run(
            command("serve", "--port", "0"),
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert second.returncode == 3
        assert f"process {process.pid} on " in second.stderr
        assert "ASSAY_DATA_DIR" in second.stderr
        assert "Traceback" not in second.stderr


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        failed = run(tmp_path, "serve", "--port", port)
    assert failed.returncode == 3
    assert f"cannot listen on 127.0.0.1 port {port}" in failed.stderr
    assert "--port" in failed.stderr


@pytest.mark.parametrize(
    ("variables", "code", "part"),
    [
        ({"ASSAY_WEBHOOK_SECRET": ""}, 2, "ASSAY_WEBHOOK_SECRET is not set"),
        ({"ASSAY_PORT": "http"}, 2, "ASSAY_PORT is 'http'"),
        ({"ASSAY_DATA_DIR": "/proc/assay"}, 3, "/proc/assay"),
        ({"ASSAY_DATABASE_URL": "sqlite:////proc/assay/assay.db"}, 3, "/proc/assay"),
    ],
)
def test_a_service_that_cannot_start_says_why(
    tmp_path: Path, variables: dict[str, str], code: int, part: str
) -> None:
    failed = run(tmp_path, "serve", **variables)
    assert (failed.returncode, failed.stdout) == (code, "")
    assert part in failed.stderr
    assert "next: " in failed.stderr
    assert "Traceback" not in failed.stderr


def run(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    options: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 60, "check": False}
    done: subprocess.CompletedProcess[str] = subprocess.run(
        command(*arguments), env=environment(folder, **variables), **options
    )
    return done
