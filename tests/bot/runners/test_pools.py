"""All pools on the same real cases: equal findings, and nothing lost or repeated where machines are lost."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bot.cli import main
from bot.errors import RunnerError, SettingsError
from bot.runners import LocalRunner, Runner
from bot.wiring import campaigns as wiring
from tests.bot.runners.pool_helpers import (
    actions_pool,
    add_cases,
    find_ray_tasks,
    make_shard,
    run,
    verdicts,
)
from tests.github.double import GitHubDouble
from tests.support.live_service import wait_for

pytestmark = pytest.mark.compiler_onnxruntime
needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray is not installed here")
#: Ray's own daemons leave sockets and files to the garbage collector.
quiet = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"
)


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty cases, of which one fails: each failure starts a process for every repeat on every pool."""
    return add_cases(tmp_path_factory.mktemp("pools") / "cases", wrong=1)


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[GitHubDouble]:
    with GitHubDouble(tmp_path) as made:
        yield made


def findings(
    runner: Runner,
    cases: Path,
    data: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> list[tuple[str, str, int, int]]:
    """(signature, classification, cases, failed runs) of a campaign with repeats on a pool."""
    monkeypatch.setattr(wiring, "runner", lambda *_: runner)
    monkeypatch.setenv("ASSAY_DATA_DIR", str(data))
    with pytest.raises(SystemExit) as left:
        main(
            [
                "run",
                "--backend",
                "onnxruntime",
                "--cases",
                str(cases),
                "--repeats",
                "2",
                "--budget",
                "120s",
                "--json",
            ]
        )
    result = json.loads(capsys.readouterr().out)
    assert left.value.code == 1
    assert result["cases"] == {"planned": 60, "run": 60, "not_run": 0}
    return sorted(
        (one["signature"], one["classification"], one["cases"], one["shown"][0]["head"]["failed"])
        for one in result["groups"]
    )


def test_an_address_of_ray_client_is_refused() -> None:
    from bot.runners.ray import RayRunner

    with pytest.raises(SettingsError, match="ray start --address=HEAD:6379 --num-cpus=0"):
        RayRunner("ray://head:10001")


@pytest.mark.slow
@quiet
@needs_ray
def test_a_campaign_finds_the_same_everywhere(
    cases: Path,
    cluster: Any,
    hub: GitHubDouble,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from bot.runners.ray import RayRunner

    def found(name: str, runner: Runner) -> list[tuple[str, str, int, int]]:
        return findings(runner, cases, tmp_path / name, capsys, monkeypatch)

    local = found("local", LocalRunner(1))
    assert [one[1:] for one in local] == [("inconclusive", 1, 2)]
    assert found("ray", RayRunner(cluster.address)) == local
    with actions_pool(hub, tmp_path) as (actions, machines):
        assert found("actions", actions) == local
    assert machines.failed == []
    assert len(machines.ran) > 2, "head in parts, and the repeats"


@quiet
@needs_ray
def test_a_killed_ray_node_and_a_killed_worker_lose_and_repeat_nothing(cases: Path, cluster: Any) -> None:
    from bot.runners.ray import RayRunner

    shard = make_shard(cases, repeats=20)
    expected = verdicts(run(LocalRunner(1), shard))
    nodes, killed = list(cluster.worker_nodes), list[str]()
    events: list[dict[str, Any]] = []

    def take(event: dict[str, Any]) -> None:
        events.append(event)
        outcomes = sum(one["event"] == "outcome" for one in events)
        if not killed:
            killed.append("node")
            cluster.remove_node(nodes[0], allow_graceful=False)
        elif outcomes and len(killed) == 1:
            killed.append("worker")
            os.kill(find_ray_tasks()[0], signal.SIGKILL)

    RayRunner(cluster.address).run(shard, take, threading.Event())
    cluster.add_node(num_cpus=1)
    assert killed == ["node", "worker"]
    assert verdicts(events) == expected


@quiet
@needs_ray
def test_a_stop_leaves_no_process_on_the_cluster(cases: Path, cluster: Any) -> None:
    from bot.runners.ray import RayRunner

    stop, events = threading.Event(), list[dict[str, Any]]()

    def take(event: dict[str, Any]) -> None:
        events.append(event)
        if event["event"] == "outcome":
            stop.set()

    RayRunner(cluster.address).run(make_shard(cases, repeats=200), take, stop)
    assert events[-1]["event"] == "outcome"
    wait_until_gone(find_ray_tasks)


def wait_until_gone(find: Any) -> None:
    wait_for(lambda: not find(), "the processes to end", poll_s=0.2, timeout_s=60)


def test_a_job_that_no_machine_takes_is_dispatched_again(
    cases: Path, hub: GitHubDouble, tmp_path: Path
) -> None:
    shard = make_shard(cases)
    with actions_pool(hub, tmp_path, lose=1, start_s=3.0) as (actions, machines):
        assert verdicts(run(actions, shard)) == verdicts(run(LocalRunner(1), shard))
    lost, *others = machines.runs
    assert lost.conclusion == "cancelled"
    assert len(others) == 2
    assert machines.failed == []


def test_jobs_that_are_always_lost_say_nothing_about_the_compiler(
    cases: Path, hub: GitHubDouble, tmp_path: Path
) -> None:
    events: list[dict[str, Any]] = []
    with (
        actions_pool(hub, tmp_path, slots=1, lose=9, start_s=0.2) as (actions, machines),
        pytest.raises(RunnerError, match="4 runners were lost one after the other: no machine took a job"),
    ):
        actions.run(make_shard(cases), events.append, threading.Event())
    assert [event["event"] for event in events] == ["start"]
    assert [one.conclusion for one in machines.runs] == ["cancelled"] * 4


def test_a_stop_cancels_the_runs_and_withdraws_the_shards(
    cases: Path, hub: GitHubDouble, tmp_path: Path
) -> None:
    stop = threading.Event()
    with actions_pool(hub, tmp_path, lose=9) as (actions, machines):
        thread = threading.Thread(target=run, args=(actions, make_shard(cases), stop))
        thread.start()
        wait_until_gone(lambda: len(machines.runs) < 2)
        stop.set()
        thread.join()
        assert all(one.conclusion == "cancelled" for one in machines.runs)
    assert list((tmp_path / "exchange").iterdir()) == []
