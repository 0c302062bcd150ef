"""Shards of real cases, and pools to run them on: here, a Ray cluster, machines of GitHub's double."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn
from fastapi import FastAPI

from bot.github.github_api import GitHubApi
from bot.github.identity import Credentials
from bot.github.workflow_dispatch import WorkflowDispatcher
from bot.runners import exchange_routes
from bot.runners.exchange import Exchange
from bot.runners.github_actions import GitHubActionsRunner
from bot.runners.protocol import Event, Runner
from fuzzing.cases import Corpus, Tensor
from fuzzing.execute.shard import Shard
from tests.bot.cli.command_helpers import add_case
from tests.github.double import GitHubDouble
from tests.github.state import WorkflowRun
from tests.workflows.conftest import ROOT
from tests.workflows.executor import Executor, machine_environment

KEY = b"k" * 32
RUNNERS = "acme/runners"
WORKFLOW = ROOT / "workflows" / "gpu-runner.yml"


def add_cases(folder: Path, count: int = 60, wrong: int = 3) -> Path:
    """A corpus of ONNX cases, of which the first `wrong` fail on every compiler."""
    corpus = Corpus(folder)
    for number in range(count):
        case = add_case("test_add", wrong=5.0 if number < wrong else 0.0)
        first = Tensor.of(np.array([number, 2, 3], np.float32))
        total = Tensor.of(np.array([number + 10, 22, 33], np.float32))
        outputs = {"z": total} if number >= wrong else dict(case.expected or ())
        inputs = tuple((name, first if name == "x" else value) for name, value in case.inputs)
        corpus.add(replace(case, inputs=inputs, expected=tuple(outputs.items())))
    return folder


def make_shard(folder: Path, **fields: Any) -> Shard:
    """A shard of all cases of a corpus, for onnxruntime here."""
    cases = tuple(sorted(Corpus(folder).ids()))
    return Shard(str(folder), cases, "onnxruntime", "t0", sys.executable, **fields)


def run(runner: Runner, shard: Shard, stop: threading.Event | None = None) -> list[Event]:
    """The events of a shard."""
    events: list[Event] = []
    runner.run(shard, events.append, stop or threading.Event())
    return events


def verdicts(events: list[Event]) -> list[tuple[str, str, str]]:
    """(case, verdict, summary) of each outcome, sorted; fails if the events are not those of one shard."""
    kinds = [event["event"] for event in events]
    assert kinds[0] == "start"
    assert kinds[-1] == "end"
    assert set(kinds[1:-1]) <= {"outcome"}
    outcomes = [event["outcome"] for event in events[1:-1]]
    return sorted((one["case"], one["verdict"], one["summary"]) for one in outcomes)


@dataclass
class Machines:
    """GitHub's self-hosted machines: each queued run of the double is executed by bash, in a thread.

    lose  how many of the first runs are never taken up
    """

    hub: GitHubDouble
    folder: Path
    lose: int = 0
    ran: list[WorkflowRun] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._poll = threading.Thread(target=self._take_runs)

    @property
    def runs(self) -> list[WorkflowRun]:
        """All runs that were dispatched."""
        return list(self.hub.repository(RUNNERS).record.workflow_runs)

    def _take_runs(self) -> None:
        seen: set[int] = set()
        while not self._stop.wait(0.02):
            for dispatched in self.runs:
                if dispatched.id not in seen:
                    seen.add(dispatched.id)
                    if len(seen) > self.lose:
                        thread = threading.Thread(target=self._execute, args=(dispatched,))
                        thread.start()
                        self._threads.append(thread)

    def _execute(self, dispatched: WorkflowRun) -> None:
        dispatched.status = "in_progress"
        workspace, temp = (self.folder / f"{dispatched.id}-{name}" for name in ("workspace", "temp"))
        for folder in (workspace, temp):
            folder.mkdir()
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        executor = Executor(workspace, temp, {}, machine_environment() | {"PATH": path})
        secrets = {"ASSAY_RUNNER_KEY": KEY.decode()}
        jobs = executor.run(WORKFLOW, "workflow_dispatch", inputs=dispatched.inputs, secrets=secrets)
        self.failed += [job.log for job in jobs if not job.succeeded]
        dispatched.status = "completed"
        self.ran.append(dispatched)

    def __enter__(self) -> Machines:
        self._poll.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._poll.join()
        for thread in self._threads:
            thread.join()


@contextmanager
def serve(exchange: Exchange, key: bytes = KEY) -> Iterator[str]:
    """The address of a service that runners reach."""
    app = FastAPI()
    app.include_router(exchange_routes.router(exchange, key))
    config = uvicorn.Config(app, port=0, log_level="error", ws="none", lifespan="off")
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    listening = config.bind_socket()
    listening.listen()
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join()
    listening.close()


@contextmanager
def actions_pool(
    hub: GitHubDouble, folder: Path, *, slots: int = 2, lose: int = 0, **limits: Any
) -> Iterator[tuple[GitHubActionsRunner, Machines]]:
    """The runner of a service that dispatches to the double, and the machines that take its runs."""
    hub.hub.permissions["actions"] = "write"
    hub.repository(RUNNERS)
    github_api = GitHubApi(Credentials(app_id=hub.app_id, private_key=hub.private_key), hub.url)
    exchange = Exchange(folder / "exchange")
    dispatcher = WorkflowDispatcher(github_api, RUNNERS, "gpu-runner.yml", "main")
    with serve(exchange) as url, Machines(hub, folder, lose) as machines:
        yield GitHubActionsRunner(exchange, dispatcher, slots, url, ("gpu",), **limits), machines
    github_api.close()


@contextmanager
def ray_cluster(nodes: int, cores: Sequence[int] = ()) -> Iterator[Any]:
    """A real cluster of nodes of one core each, on this machine; this process is connected to it.

    cores  of the machine: each node and what it starts is kept on one; elsewhere Ray only counts cores
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "object_store_memory": 100 << 20, "include_dashboard": False}
    cluster: Any = Cluster(initialize_head=True, head_node_args={**node, "num_cpus": 0})
    whole = os.sched_getaffinity(0)
    for number in range(nodes):
        os.sched_setaffinity(0, {cores[number]} if cores else whole)
        try:
            cluster.add_node(num_cpus=1, object_store_memory=100 << 20)
        finally:
            os.sched_setaffinity(0, whole)
    ray.init(address=cluster.address, log_to_driver=False, configure_logging=False)
    try:
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


def find_ray_tasks() -> list[int]:
    """The processes of this one's Ray nodes that run our task now, as Ray names them."""
    listed = subprocess.run(["pgrep", "-f", "^ray::_run_part"], capture_output=True, text=True, check=False)
    return [pid for pid in map(int, listed.stdout.split()) if _is_below(pid, os.getpid())]


def _is_below(pid: int, ancestor: int) -> bool:
    """Whether a process is a descendant of another."""
    while pid > 1 and pid != ancestor:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return False
        pid = int(stat.rpartition(")")[2].split()[1])
    return pid == ancestor
