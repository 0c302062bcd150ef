"""Throughput of one, two and three services on one PostgreSQL database, for deliveries and storms of pushes.

In each round the services share a database and a data folder. They first receive signed deliveries as fast as
they answer, some of them twice through different services, and process them. Then several pull requests get
pushes at once, with a GitHub double and a trivial compiler; each must end with one comment and one live
campaign. Figures are ratios to one service in the same round; everything shares the machine.

A service has a process that answers and one that reads, beside which senders and PostgreSQL want cores. On
two cores `--share 0.15` keeps each process of a service to that share of a core, so that services do not take
it from each other: what is left is what they cost each other. The bar: two answer 1.5 times as fast as one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks import webhooks
from tests.benchmarks._common import machine, verdict
from tests.scenarios.deployment import Deployment
from tests.scenarios.service_process import ServiceProcess
from tests.scenarios.storm import storms
from tests.support.postgres import SWITCH, Server, missing, serving

_SENDERS = 24  # requests under way at a time, to each service
_LATER = 100  # a delivery's second copy comes about so many later


@dataclass(frozen=True)
class Measurements:
    """Results of one round.

    answered, read   deliveries a second
    storm_s          seconds until all work ended
    wrong            deliveries lost or processed twice, pull requests in a wrong final state
    """

    services: int
    answered: float
    read: float
    storm_s: float
    wrong: list[str]


class ServiceGroup(Deployment):
    """A test stage with several services."""

    def __init__(self, folder: Path, services: int) -> None:
        super().__init__(folder)
        self._services = services
        self._others: list[ServiceProcess] = []

    def start(self) -> None:
        """Starts all services; deliveries go to the first."""
        super().start()
        for _ in range(1, self._services):
            self._others.append(ServiceProcess(self._environment(), self.folder / "service.log"))

    def stop(self) -> None:
        """Stops all services."""
        codes = [service_process.end(signal.SIGTERM) for service_process in self._others]
        self._others.clear()
        super().stop()
        assert not any(codes), f"services ended with {codes}: {self.log()[-2000:]}"


def main(argv: Sequence[str]) -> int:
    """Exit code 1 if anything was lost, duplicated or not done."""
    parser = argparse.ArgumentParser(prog="instances", description=__doc__)
    parser.add_argument("--services", type=int, nargs="+", default=[1, 2, 3], help="how many; 1 first")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--deliveries", type=int, default=600, help="different ones")
    parser.add_argument("--share", type=float, default=1.0, help="of a core, for each process of a service")
    parser.add_argument("--no-storms", action="store_true", help="deliveries alone")
    parser.add_argument("--pulls", type=int, default=6, help="pull requests that are pushed to at once")
    parser.add_argument("--pushes", type=int, default=6, help="to each of them, half a second apart")
    options = parser.parse_args(argv)
    if why := missing():
        raise SystemExit(why)
    os.environ[SWITCH] = "1"
    print(machine())
    print(f"{'services':>8} {'answered/s':>11} {'read/s':>8} {'storm s':>8}")
    rounds = [[_figures(count, options) for count in options.services] for _ in range(options.rounds)]
    for place, count in enumerate(options.services):
        print(f"{count} services beside {options.services[0]}: {_ratios(rounds, place)}")
    wrong = [text for figures in rounds for one in figures for text in one.wrong]
    for text in wrong:
        print(text)
    return verdict(not wrong, "nothing lost, nothing twice; one comment and one live campaign a pull request")


def _ratios(rounds: Sequence[Sequence[Measurements]], place: int) -> str:
    """Medians over the rounds, with minimum and maximum."""

    def reported(name: str, ratios: list[float]) -> str:
        return f"{name} {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"

    pairs = [(figures[place], figures[0]) for figures in rounds]
    return ", ".join(
        (
            reported("answered", [one.answered / alone.answered for one, alone in pairs]),
            reported("read", [one.read / alone.read for one, alone in pairs]),
            reported("storms", [alone.storm_s / one.storm_s for one, alone in pairs]),
        )
    )


def _figures(count: int, options: argparse.Namespace) -> Measurements:
    with serving() as server, tempfile.TemporaryDirectory() as folder:
        answered, read, wrong = _deliveries(server, Path(folder), count, options)
    storm_s, left = 1.0, list[str]()
    if not options.no_storms:
        with tempfile.TemporaryDirectory() as folder:
            storm_s, left = _storms(Path(folder), count, options)
    print(f"{count:8} {answered:11.0f} {read:8.0f} {storm_s:8.1f}", flush=True)
    return Measurements(
        count, answered, read, storm_s, [f"{count} services: {text}" for text in wrong + left]
    )


def _deliveries(
    server: Server, folder: Path, count: int, options: argparse.Namespace
) -> tuple[float, float, list[str]]:
    """Deliveries answered and processed per second, and errors."""
    url, fresh = server.database("deliveries"), options.deliveries
    shots = _shots(fresh, count)
    with ExitStack() as stack:
        # Sequentially, since the first creates the tables.
        hosts = [stack.enter_context(webhooks.service(folder, url, options.share)) for _ in range(count)]
        asyncio.run(_send(hosts, [(webhooks.delivery(0, 10_000), n) for n in range(count)]))
        begun = time.monotonic()
        output = asyncio.run(_send(hosts, shots))
        answered = time.monotonic() - begun
        counted = webhooks.wait_until_read(url)
        read = time.monotonic() - begun
    there, pending = sum(counted.values()) - 1, counted.get("pending", 0)
    wrong = [
        text
        for text, number in (
            ("lost", fresh - there),
            ("said to be new twice", output.new - fresh),
            ("not answered as due", output.wrong),
            ("not read", pending),
        )
        if number
    ]
    return len(shots) / answered, (fresh - pending) / read, [f"deliveries {text}" for text in wrong]


def _shots(fresh: int, count: int) -> list[tuple[webhooks.Shot, int]]:
    """Deliveries with the number of their service; a tenth is repeated to another one."""
    rng = random.Random(1)
    made = [(webhooks.delivery(number, 10_000), number % count) for number in range(1, fresh + 1)]
    again = {place: made[place] for place in sorted(rng.sample(range(fresh), fresh // 10))}
    late = [
        (place + rng.randint(1, _LATER), shot, (where + 1) % count) for place, (shot, where) in again.items()
    ]
    ordered = [(place, shot, where) for place, (shot, where) in enumerate(made)] + late
    return [(shot, where) for _, shot, where in sorted(ordered, key=lambda one: one[0])]


async def _send(
    hosts: Sequence[tuple[str, int]], shots: Sequence[tuple[webhooks.Shot, int]]
) -> webhooks.Sample:
    """Sends to each service as fast as it answers; none waits for another's answers."""
    sample = webhooks.Sample()

    async def sender(client: webhooks.Client, left: Iterator[webhooks.Shot]) -> None:
        for shot in left:
            status, body = await client.send(shot.request)
            sample.wrong += status != shot.expected
            sample.new += status == 202 and json.loads(body)["stored"]

    clients = [webhooks.Client(*host) for host in hosts]
    async with asyncio.TaskGroup() as tasks:
        for number, client in enumerate(clients):
            left = iter([shot for shot, where in shots if where == number])
            for _ in range(_SENDERS):
                tasks.create_task(sender(client, left))
    for client in clients:
        await client.close()
    return sample


def _storms(folder: Path, count: int, options: argparse.Namespace) -> tuple[float, list[str]]:
    """Seconds until all work ended, and errors in the final state."""
    names = [f"octo/storm-{number}" for number in range(options.pulls)]
    with ServiceGroup(folder, count) as deployment:
        found = storms(deployment, names, options.pushes, options.pushes / 2)
        wrong = deployment.internal_errors()
    for name, storm_result in zip(names, found, strict=True):
        kept = (
            storm_result.max_unfinished <= 1
            and storm_result.comments == 1
            and storm_result.done_heads[-1:] == [storm_result.last_head]
        )
        if not kept or storm_result.unfinished_checks:
            wrong.append(f"{name}: {storm_result}")
    return found[0].idle_after_s, wrong
