"""Acknowledgement of signed deliveries by a real `assay serve`, beside /healthz in the same run.

Deliveries are sent at a fixed rate, and latency counts from the time a delivery was due, so a stall is
charged to all that wait behind it (no coordinated omission). Some are duplicates, some malformed, in shuffled
order. `--databases sqlite postgresql` measures both in turn; ASSAY_TEST_POSTGRESQL=1 starts a PostgreSQL
server if none is named.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bot.store import Database, inbox
from bot.webhooks.signature import sign
from tests.benchmarks._throttle import throttled
from tests.support.postgres import SWITCH, missing, serving

SECRET = "benchmark"
SQLITE, POSTGRESQL = DATABASES = ("sqlite", "postgresql")
LIMIT_MS = 50.0  # the promise, at the 99th percentile
KEPT_S = 2.0  # the service closes connections that were idle for 5 s
BASELINE_SHARE = 4  # one /healthz for so many deliveries


@dataclass
class Sample:
    """Latencies in seconds, unexpected answers, and deliveries accepted as new."""

    seconds: list[float] = field(default_factory=list)
    wrong: int = 0
    new: int = 0

    def at(self, quantile: float) -> float:
        """The latency percentile in milliseconds."""
        ordered = sorted(self.seconds)
        return ordered[max(0, math.ceil(quantile * len(ordered)) - 1)] * 1000

    def line(self, name: str) -> str:
        """One row of the table."""
        return (
            f"{name:<10} {len(self.seconds):>6} {self.at(0.5):>8.2f} {self.at(0.99):>8.2f} {self.at(1):>8.2f}"
        )


class Client:
    """A minimal HTTP/1.1 client with persistent connections."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._idle: list[tuple[float, asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def send(self, request: bytes) -> tuple[int, bytes]:
        """Sends a request; the answer's status and body."""
        reader, writer = await self._connection()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head)
        assert length is not None
        body = await reader.readexactly(int(length[1]))
        self._idle.append((time.perf_counter(), reader, writer))
        return int(head.split(b" ", 2)[1]), body

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
    """A push payload, padded with commits to `size` bytes."""
    commit = {"id": f"{number:040x}", "message": "Fold constants before layout", "added": ["a/b.cpp"] * 8}
    body = {
        "ref": "refs/heads/main",
        "before": f"{number:040x}",
        "after": f"{number + 1:040x}",
        "repository": {"full_name": "octo-org/compiler"},
    }
    commits = [commit] * max(1, (size - len(json.dumps(body))) // len(json.dumps(commit)))
    return json.dumps(body | {"commits": commits}).encode()


@dataclass(frozen=True)
class Shot:
    """A request and its expected status."""

    request: bytes
    expected: int


def delivery(number: int, size: int) -> Shot:
    """A signed delivery."""
    return Shot(request(push_payload(number, size), number), 202)


def malformed(number: int, size: int) -> Shot:
    """Malformed requests, each invalid in a different way."""
    body = push_payload(number, size)
    kinds = (
        Shot(request(body[:-1], number), 400),  # no JSON
        Shot(request(b"[" + body + b"]", number), 400),  # no object
        Shot(request(body, number, secret="another"), 401),
        Shot(request(body, number, event=""), 400),
        Shot(request(body, number, content="application/x-www-form-urlencoded"), 415),
    )
    return kinds[number % len(kinds)]


def request(
    body: bytes,
    number: int,
    *,
    secret: str = SECRET,
    event: str = "push",
    content: str = "application/json",
) -> bytes:
    """The bytes of a signed delivery."""
    head = (
        f"POST /webhooks/github HTTP/1.1\r\nHost: localhost\r\nContent-Type: {content}\r\n"
        f"Content-Length: {len(body)}\r\nX-GitHub-Event: {event}\r\nX-GitHub-Delivery: bench-{number}\r\n"
        f"X-Hub-Signature-256: {sign(secret.encode(), body)}\r\n\r\n"
    )
    return head.encode() + body


def volley(options: argparse.Namespace) -> list[Shot]:
    """All requests in an order given by the seed; numbers start at 1."""
    rng, count = random.Random(options.seed), options.deliveries
    twice, wrong = int(count * options.duplicates), int(count * options.malformed)
    fresh = count - twice - wrong
    good = [delivery(number, options.size) for number in range(1, fresh + 1)]
    bad = [malformed(number, options.size) for number in range(fresh + 1, fresh + wrong + 1)]
    shots = [*good, *rng.sample(good, twice), *bad]
    rng.shuffle(shots)
    return shots


async def run(client: Client, rate: float, shots: Sequence[Shot]) -> tuple[Sample, Sample]:
    """Sends everything at its time; deliveries' sample and the baseline's."""
    deliveries, baseline = Sample(), Sample()
    health = Shot(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 200)

    async def timed(due: float, shot: Shot, sample: Sample) -> None:
        status, body = await client.send(shot.request)
        sample.seconds.append(time.perf_counter() - due)
        sample.wrong += status != shot.expected
        sample.new += status == 202 and json.loads(body)["stored"]

    begun = time.perf_counter() + 0.1
    async with asyncio.TaskGroup() as tasks:
        for number, shot in enumerate(shots):
            due = begun + number / rate
            await _until(due)
            tasks.create_task(timed(due, shot, deliveries))
            if number % BASELINE_SHARE == 0:
                due += 0.5 / rate
                await _until(due)
                tasks.create_task(timed(due, health, baseline))
    await client.close()
    return deliveries, baseline


async def _until(due: float) -> None:
    await asyncio.sleep(max(0.0, due - time.perf_counter()))


@contextmanager
def service(data_dir: Path, url: str, share: float = 1) -> Iterator[tuple[str, int]]:
    """A real service on a free port with the database at `url`; SIGTERM must end it cleanly.

    share  of a core that each of its processes gets
    """
    environment = os.environ | {"ASSAY_WEBHOOK_SECRET": SECRET, "ASSAY_DATA_DIR": str(data_dir)}
    environment["ASSAY_DATABASE_URL"] = url
    with (
        open(data_dir / "log", "ab") as log,
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
            with throttled(process.pid, share):
                yield found[1], int(found[2])
        finally:
            process.send_signal(signal.SIGTERM)
        if process.wait(60):
            raise SystemExit(f"the service ended with {process.returncode}")


def main(argv: Sequence[str]) -> int:
    """Prints the tables; 1 if the bar is not met."""
    parser = argparse.ArgumentParser(prog="webhooks", description=__doc__)
    parser.add_argument("--rate", type=float, default=200.0, help="deliveries a second")
    parser.add_argument("--deliveries", type=int, default=2000, help="requests in all")
    parser.add_argument("--duplicates", type=float, default=0.1, help="share that comes a second time")
    parser.add_argument("--malformed", type=float, default=0.05, help="share that is no delivery")
    parser.add_argument("--size", type=int, default=10_000, help="bytes of a payload")
    parser.add_argument("--seed", type=int, default=1, help="of the order")
    parser.add_argument("--databases", nargs="+", choices=DATABASES, help="one after the other")
    options = parser.parse_args(argv)
    usual = [POSTGRESQL if os.environ.get(SWITCH) else SQLITE]
    kept = [_on(database, options) for database in options.databases or usual]
    return 0 if all(kept) else 1


def _on(database: str, options: argparse.Namespace) -> bool:
    """Measures a service on one database; whether the bar was met."""
    if database == POSTGRESQL and (why := missing()):
        raise SystemExit(why)
    shots = volley(options)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        if database == POSTGRESQL:
            url = stack.enter_context(serving()).database("deliveries")
        else:
            url = f"sqlite:///{folder}/assay.db"
        before = _spent()
        with service(Path(folder), url) as (host, port):
            asyncio.run(run(Client(host, port), options.rate, [delivery(0, options.size)] * 20))  # warm-up
            begun = time.monotonic()
            deliveries, baseline = asyncio.run(run(Client(host, port), options.rate, shots))
            came = time.monotonic()
            pending = _counts(url).get("pending", 0)
            counted = wait_until_read(url)
            read = time.monotonic()
        spent = _spent() - before
    print(f"on {database}; load of this machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"{'request':<10} {'sent':>6} {'p50 ms':>8} {'p99 ms':>8} {'max ms':>8}")
    print(deliveries.line("delivery"))
    print(baseline.line("/healthz"))
    ratio50, ratio99 = (deliveries.at(q) / baseline.at(q) for q in (0.5, 0.99))
    print(f"ratio delivery/healthz: p50 {ratio50:.2f}, p99 {ratio99:.2f}")
    total = sum(counted.values())
    after = f", {pending / (read - came):.0f}/s after the last" if pending else ""
    print(f"the reader: {(total - pending) / (came - begun):.0f} deliveries/s while they came{after}")
    print(f"the service's CPU time, start and stop included: {spent / len(shots) * 1000:.2f} ms a delivery")
    distinct = len({shot.request for shot in shots if shot.expected == 202})
    lost, twice = distinct + 1 - total, deliveries.new - distinct
    print(
        f"{distinct} different deliveries; in the database: {counted}; lost {lost}, taken twice {twice}, "
        f"wrong answers {deliveries.wrong + baseline.wrong}"
    )
    kept = deliveries.at(0.99) < LIMIT_MS and not (lost or twice or deliveries.wrong)
    promise = f"p99 < {LIMIT_MS:.0f} ms at {options.rate:.0f}/s, none lost, none twice"
    print(f"{'kept' if kept else 'NOT KEPT'}: {promise}", flush=True)
    return kept


def _spent() -> float:
    """CPU seconds of the services so far, without PostgreSQL."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def wait_until_read(url: str) -> dict[str, int]:
    """Rows by state once all are processed, or after five minutes."""
    deadline = time.monotonic() + 300
    while True:
        counted = _counts(url)
        if not counted.get("pending", 0) or time.monotonic() > deadline:
            return counted
        time.sleep(0.2)


def _counts(url: str) -> dict[str, int]:
    """Rows by state."""
    database = Database(url)
    try:
        with database.reading() as session:
            return inbox.counts(session)
    finally:
        database.close()
