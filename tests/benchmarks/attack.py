"""Hostile packages, cases, payloads and connections against a live service: what gets out, and what it costs.

While deliveries arrive at a steady rate, five attackers work at once: wheels that attack when they are
installed and imported, cases that attack from inside a worker, signed and unsigned payloads and texts made to
break a reader, clients that hold connections open, and readers of pages full of hostile texts. Printed: what
got out of the sandbox, the slowest acknowledgement, wrong answers, and the processes and files that are left.
Exit code 1 if anything got out, was left behind or doubled, or an acknowledgement took longer than the limit.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import select

from bot.store import Database
from bot.store.jobs import INTERNAL_ERROR
from bot.store.models import Bug, Delivery, DeliveryState, Target
from fuzzing import backends
from fuzzing.execute.supervisor import Supervisor
from tests import hostile_texts
from tests.benchmarks import webhooks
from tests.benchmarks.webhooks import Client, Sample
from tests.bot.toolchains import test_hostile_toolchain as packages
from tests.bot.toolchains.test_release_provision import Tiny, use_index
from tests.fuzzing.execute import probe_runner
from tests.fuzzing.execute.hostile_probes import PROBES
from tests.support import hostile
from tests.support.live_service import processes

PUBLIC = "octo-org/public"
FIRST_HOSTILE = 10_000_000  # the number of the first hostile delivery
LIMIT_MS = 1000.0  # the slowest acknowledgement that is allowed meanwhile
HALF_OPEN, SLOW_BODIES = 1100, 120
TEXT_LENGTH = 60_000  # GitHub's comments have at most 65,536 characters
HOSTILE_BUGS = 100  # on the page of a repository
#: Answers to requests for pages: made, more wait than may, beyond the limits of its process.
_PAGE_ANSWERS = (200, 503)
#: Probes that answer with a list of what they reached; an empty one is what is wanted.
_LISTING_PROBES = ("write_everywhere", "harm", "connect", "regain")


@dataclass
class Damage:
    """What an attacker reached, in words; `tried` counts its attempts."""

    tried: int = 0
    got_out: list[str] = field(default_factory=list)


def hostile_bodies(rng: random.Random) -> Iterator[tuple[str, bytes]]:
    """(event, body) of payloads that are meant to stop whoever reads them; without end."""
    repository = {"id": 1, "full_name": "octo-org/compiler", "private": False}
    texts = (
        "/assay " + "a.b." * 4000,
        "\n".join("x" * 8000),
        "/assay run " + "9" * 5000,
        "\u202e@everyone ![](//e) <!-- assay:x -->" * 200,
        "\0" * 100,
        *(hostile_texts.repeat(unit, TEXT_LENGTH) for unit in hostile_texts.UNITS),
    )
    while True:
        text = rng.choice(texts)
        yield "issue_comment", json.dumps({
            "action": "created", "repository": repository, "sender": {"login": text[:39], "type": "User"},
            "issue": {"number": 1},
            "comment": {"id": rng.getrandbits(40), "body": text, "user": {"login": "eve"}},
        }).encode()  # fmt: skip
        yield "push", b"[" * 100_000
        yield "push", json.dumps({"ref": text, "before": 7, "after": None, "repository": repository}).encode()
        yield "pull_request", b'{"number": 1' + b"0" * 5000 + b"}"
        yield rng.choice(("push", "check_run", "../x", "issues")), rng.randbytes(2000)


async def send_payloads(client: Client, damage: Damage, seed: int, until: float) -> None:
    """Signed and unsigned hostile payloads, ten a second; a 5xx counts as damage."""
    rng = random.Random(seed)
    for number, (event, body) in enumerate(hostile_bodies(rng)):
        if time.perf_counter() > until:
            return
        secret = webhooks.SECRET if number % 2 else "another"
        shot = webhooks.request(body, FIRST_HOSTILE + number, event=event, secret=secret)
        status, _ = await client.send(shot)
        damage.tried += 1
        if status >= 500:
            damage.got_out.append(f"{event} of {len(body)} bytes was answered with {status}")
        await asyncio.sleep(0.1)


def check_refusals(url: str, damage: Damage) -> None:
    """An honest delivery that was refused, and a hostile one that met a fault of ours, count as damage."""
    database = Database(url)
    with database.reading() as session:
        refused = session.scalars(select(Delivery).where(Delivery.state == DeliveryState.FAILED.value)).all()
    for one in refused:
        honest = int(one.id.removeprefix("bench-")) < FIRST_HOSTILE
        if honest or one.reason.startswith(INTERNAL_ERROR):
            damage.got_out.append(f"delivery {one.id} was refused: {one.reason}")
    database.close()


def fill_pages(url: str) -> None:
    """A public repository with bugs whose titles and reasons are hostile texts."""
    database = Database(url)
    at = datetime(2026, 1, 1, tzinfo=UTC)
    with database.transaction() as session:
        session.add(Target(name=PUBLIC, private=False))
        for number in range(HOSTILE_BUGS):
            text = hostile_texts.repeat(hostile_texts.UNITS[number % len(hostile_texts.UNITS)], TEXT_LENGTH)
            session.add(
                Bug(
                    target=PUBLIC,
                    signature=f"{number:016x}",
                    title=text,
                    reason=text,
                    first_seen=at,
                    last_seen=at,
                )
            )
    database.close()


async def read_pages(client: Client, damage: Damage, until: float) -> None:
    """Requests for pages, one after the other; an answer that no page has counts as damage."""
    paths = itertools.cycle(("/", f"/repositories/{PUBLIC}"))
    while time.perf_counter() < until:
        path = next(paths)
        status, body = await client.send(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        damage.tried += 1
        if status not in _PAGE_ANSWERS or b"<script" in body:
            damage.got_out.append(f"{path} was answered with {status}, {len(body)} bytes")


async def hold_connections(address: tuple[str, int], damage: Damage, until: float) -> None:
    """Half-open requests and bodies that never end, held until the time is over."""
    head = b"POST /webhooks/github HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    starts = [head] * HALF_OPEN + [head + b"Content-Length: 20000000\r\n\r\n" + b"[" * 65_536] * SLOW_BODIES
    writers = []
    for start in starts:
        damage.tried += 1
        try:
            _, writer = await asyncio.open_connection(*address)
            writer.write(start)
        except OSError:
            continue  # refused: that is what the limit is for
        writers.append(writer)
    await asyncio.sleep(max(0.0, until - time.perf_counter()))
    for writer in writers:
        writer.close()


async def deliver(client: Client, rate: float, count: int) -> Sample:
    """Well-formed deliveries at a steady rate."""
    deliveries, _ = await webhooks.run(
        client, rate, [webhooks.delivery(one + 1, 10_000) for one in range(count)]
    )
    return deliveries


def attack_by_packages(root: Path, damage: Damage) -> None:
    """Provisions every hostile wheel; what it reached is what it left outside."""
    with pytest.MonkeyPatch.context() as patch, hostile.listener() as (port, server):
        patch.setattr(backends, "get", lambda _name: Tiny)
        patch.setenv("UV_COMPILE_BYTECODE", "1")
        stage = packages.Stage(root, port, server)
        use_index(root / "index", root, patch)
        for way in packages.WAYS:
            answer = stage.provision(way)
            damage.tried += 1
            leaked = ["the secret"] if hostile.SECRET in answer else []
            damage.got_out += [f"package {way}: {one}" for one in (*stage.taken(), *leaked)]


def attack_by_cases(root: Path, damage: Damage) -> None:
    """Runs every hostile case in a worker."""
    victim = root / "victim"
    victim.write_text("precious")
    options = {
        "forbidden": [str(root), "/home", "/tmp", "/"],
        "victim": str(victim),
        "servers": [],
        "level": "",
    }
    supervisor: Supervisor[str] = Supervisor(probe_runner.command(options=options, cache=str(root / "cache")))
    answers = probe_runner.answers(supervisor, {name: PROBES[name] for name in _LISTING_PROBES})
    damage.tried += len(answers)
    damage.got_out += [f"case {name}: {answer}" for name, answer in answers.items() if answer != "[]"]


def _in_thread(attack: Callable[[Path, Damage], None], root: Path, damage: Damage) -> threading.Thread:
    root.mkdir()

    def run() -> None:
        try:
            attack(root, damage)
        except Exception as error:  # noqa: BLE001 - an attack that cannot be made proves nothing
            damage.got_out.append(f"the attack itself failed: {type(error).__name__}: {error}")

    thread = threading.Thread(target=run, name=attack.__name__)
    thread.start()
    return thread


@contextmanager
def _temporary_files(folder: Path) -> Iterator[None]:
    """Everything started here makes its temporary files in one place, where leftovers are found."""
    before = os.environ.get("TMPDIR")
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before
        os.environ.pop("TMPDIR") if before is None else os.environ.__setitem__("TMPDIR", before)


async def attack_service(
    address: tuple[str, int], options: argparse.Namespace
) -> tuple[Sample, Damage, Damage, Damage]:
    """Deliveries, and beside them the payloads, the held connections and the pages."""
    until = time.perf_counter() + options.seconds
    payloads, connections, page_damage = Damage(), Damage(), Damage()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(hold_connections(address, connections, until))
        tasks.create_task(send_payloads(Client(*address), payloads, options.seed, until))
        tasks.create_task(read_pages(Client(*address), page_damage, until))
        sent = tasks.create_task(deliver(Client(*address), options.rate, int(options.rate * options.seconds)))
    return sent.result(), payloads, connections, page_damage


def main(argv: Sequence[str]) -> int:
    """Prints a line for each attacker and the acknowledgements; 1 if a promise is broken."""
    parser = argparse.ArgumentParser(prog="attack", description=__doc__)
    parser.add_argument("--rate", type=float, default=20.0, help="deliveries a second")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long they arrive")
    parser.add_argument("--seed", type=int, default=1, help="of the payloads")
    options = parser.parse_args(argv)
    package_damage, case_damage = Damage(), Damage()
    with tempfile.TemporaryDirectory(prefix="assay-attack-") as folder:
        root, temporary, data = (Path(folder) / name for name in ("loot", "tmp", "data"))
        for one in (root, temporary, data):
            one.mkdir()
        url = f"sqlite:///{data}/assay.db"
        with _temporary_files(temporary), pytest.MonkeyPatch.context() as patch:
            patch.setenv("ASSAY_PUBLIC_URL", "https://assay.example/")
            with webhooks.service(data, url) as address:
                fill_pages(url)
                threads = [
                    _in_thread(attack_by_packages, root / "packages", package_damage),
                    _in_thread(attack_by_cases, root / "cases", case_damage),
                ]
                sample, payload_damage, connection_damage, page_damage = asyncio.run(
                    attack_service(address, options)
                )
                for thread in threads:
                    thread.join()
                counts = webhooks.wait_until_read(url)
                check_refusals(url, payload_damage)
            left = [
                f"process {pid}: {words[:80]}"
                for pid, words in processes(temporary).items()
                if pid != os.getpid()
            ]
            left += [f"file {path.name}" for path in temporary.glob("assay-*")]
    return _report(sample, counts, left, {
        "packages": package_damage, "cases": case_damage,
        "payloads": payload_damage, "connections": connection_damage,
        "pages": page_damage,
    })  # fmt: skip


def _report(sample: Sample, counts: dict[str, int], left: list[str], damages: dict[str, Damage]) -> int:
    for name, damage in damages.items():
        print(f"{name:<12} {damage.tried:>5} tried, {len(damage.got_out)} got out")
        for line in damage.got_out[:5]:
            print(f"    {line[:300]}")
    print(f"left behind  {len(left)}")
    for line in left[:5]:
        print(f"    {line}")
    slowest = sample.at(1)
    print(
        f"acknowledged {len(sample.seconds)} deliveries, {sample.wrong} wrong; p50 {sample.at(0.5):.0f} ms, "
        f"p99 {sample.at(0.99):.0f} ms, slowest {slowest:.0f} ms (limit {LIMIT_MS:.0f}); "
        f"read: {counts.get('done', 0)}, refused as malformed: {counts.get('failed', 0)}"
    )
    broken = any(damage.got_out for damage in damages.values()) or left or sample.wrong or slowest > LIMIT_MS
    return int(bool(broken))
