"""Acknowledgement of signed deliveries by a real `assay serve`, beside /healthz in the same run.

Deliveries leave at a fixed rate, whether the ones before are answered or not, and a latency counts from
the moment a delivery was due; so a stall is charged to everything that waited behind it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bot.store import Database, inbox
from bot.webhooks.signature import sign

SECRET = "benchmark"
LIMIT_MS = 20.0  # the promise, at the 99th percentile
KEPT_S = 2.0  # the service closes connections that were idle for 5 s
BASELINE_SHARE = 4  # one /healthz for so many deliveries


@dataclass
class Sample:
    """Latencies in seconds, and answers that were not the expected one."""

    seconds: list[float] = field(default_factory=list)
    wrong: int = 0

    def at(self, quantile: float) -> float:
        """The latency in milliseconds that this share of requests stayed at or under."""
        ordered = sorted(self.seconds)
        return ordered[max(0, math.ceil(quantile * len(ordered)) - 1)] * 1000

    def line(self, name: str) -> str:
        """One row of the table."""
        return (
            f"{name:<10} {len(self.seconds):>6} {self.at(0.5):>8.2f} {self.at(0.99):>8.2f} {self.at(1):>8.2f}"
        )


class Client:
    """HTTP/1.1 over kept connections, as little of it as a measurement needs."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._idle: list[tuple[float, asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def send(self, request: bytes) -> int:
        """Sends a request; the answer's status."""
        reader, writer = await self._connection()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head)
        assert length is not None
        await reader.readexactly(int(length[1]))
        self._idle.append((time.perf_counter(), reader, writer))
        return int(head.split(b" ", 2)[1])

    async def _connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        while self._idle:
            since, reader, writer = self._idle.pop()
            if time.perf_counter() - since < KEPT_S:
                return reader, writer
            writer.close()
        return await asyncio.open_connection(*self._address)

    async def close(self) -> None:
        """Closes the connections."""
        for *_, writer in self._idle:
            writer.close()
            await writer.wait_closed()


def push_payload(number: int, size: int) -> bytes:
    """A push like GitHub's, with commits until it is `size` bytes long."""
    commit = {"id": f"{number:040x}", "message": "Fold constants before layout", "added": ["a/b.cpp"] * 8}
    body = {
        "ref": "refs/heads/main",
        "before": f"{number:040x}",
        "after": f"{number + 1:040x}",
        "repository": {"full_name": "octo-org/compiler"},
    }
    commits = [commit] * max(1, (size - len(json.dumps(body))) // len(json.dumps(commit)))
    return json.dumps(body | {"commits": commits}).encode()


def delivery(number: int, size: int) -> bytes:
    """The whole signed request."""
    body = push_payload(number, size)
    head = (
        "POST /webhooks/github HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nX-GitHub-Event: push\r\nX-GitHub-Delivery: bench-{number}\r\n"
        f"X-Hub-Signature-256: {sign(SECRET.encode(), body)}\r\n\r\n"
    )
    return head.encode() + body


async def run(client: Client, rate: float, requests: list[bytes]) -> tuple[Sample, Sample]:
    """Sends everything at its time; deliveries' sample and the baseline's."""
    deliveries, baseline = Sample(), Sample()
    health = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"

    async def timed(due: float, request: bytes, expected: int, sample: Sample) -> None:
        status = await client.send(request)
        sample.seconds.append(time.perf_counter() - due)
        sample.wrong += status != expected

    begun = time.perf_counter() + 0.1
    async with asyncio.TaskGroup() as tasks:
        for number, request in enumerate(requests):
            due = begun + number / rate
            await _until(due)
            tasks.create_task(timed(due, request, 202, deliveries))
            if number % BASELINE_SHARE == 0:
                due += 0.5 / rate
                await _until(due)
                tasks.create_task(timed(due, health, 200, baseline))
    await client.close()
    return deliveries, baseline


async def _until(due: float) -> None:
    await asyncio.sleep(max(0.0, due - time.perf_counter()))


@contextmanager
def service(data_dir: Path) -> Iterator[tuple[str, int]]:
    """A real service on a free port; ended with SIGTERM, and it must end well."""
    environment = os.environ | {"ASSAY_WEBHOOK_SECRET": SECRET, "ASSAY_DATA_DIR": str(data_dir)}
    with (
        open(data_dir / "log", "wb") as log,
        subprocess.Popen(
            [sys.executable, "-m", "bot.cli", "serve", "--port", "0"],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as process,
    ):
        assert process.stdout is not None
        found = re.search(r"http://([\d.]+):(\d+)", process.stdout.readline())
        if found is None:
            raise SystemExit((data_dir / "log").read_text())
        try:
            yield found[1], int(found[2])
        finally:
            process.send_signal(signal.SIGTERM)
        if process.wait(60):
            raise SystemExit(f"the service ended with {process.returncode}")


def main(argv: Sequence[str]) -> int:
    """Prints the table; 1 if the promise was not kept."""
    parser = argparse.ArgumentParser(prog="webhooks", description=__doc__)
    parser.add_argument("--rate", type=float, default=100.0, help="deliveries a second")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--size", type=int, default=10_000, help="bytes of a payload")
    options = parser.parse_args(argv)
    requests = [
        delivery(number, options.size) for number in range(1, 1 + int(options.rate * options.seconds))
    ]
    with tempfile.TemporaryDirectory() as folder, service(Path(folder)) as (host, port):
        asyncio.run(run(Client(host, port), options.rate, [delivery(0, options.size)] * 20))  # warm-up
        deliveries, baseline = asyncio.run(run(Client(host, port), options.rate, requests))
        counted = wait_until_read(Path(folder), len(requests) + 1)
    print(f"{'request':<10} {'sent':>6} {'p50 ms':>8} {'p99 ms':>8} {'max ms':>8}")
    print(deliveries.line("delivery"))
    print(baseline.line("/healthz"))
    ratio50, ratio99 = (deliveries.at(q) / baseline.at(q) for q in (0.5, 0.99))
    print(f"ratio delivery/healthz: p50 {ratio50:.2f}, p99 {ratio99:.2f}")
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    per_delivery = (spent.ru_utime + spent.ru_stime) / len(requests) * 1000
    print(f"the service's CPU time, start and stop included: {per_delivery:.2f} ms a delivery")
    lost = len(requests) + 1 - sum(counted.values())
    print(f"in the database: {counted}; lost {lost}, wrong answers {deliveries.wrong + baseline.wrong}")
    kept = deliveries.at(0.99) < LIMIT_MS and not lost and not deliveries.wrong
    print(f"{'kept' if kept else 'NOT KEPT'}: p99 < {LIMIT_MS:.0f} ms at {options.rate:.0f}/s, none lost")
    return 0 if kept else 1


def wait_until_read(folder: Path, expected: int) -> dict[str, int]:
    """Rows by state once the reader is through (or a minute has passed)."""
    database = Database(f"sqlite:///{folder}/assay.db")
    deadline = time.monotonic() + 60
    try:
        while True:
            with database.reading() as session:
                counted = inbox.counts(session)
            if counted.get("done", 0) >= expected or time.monotonic() > deadline:
                return counted
            time.sleep(0.2)
    finally:
        database.close()
