"""One pull request from its opening to what its merge broke, its mending and return; what is to be read then.

Failing cases are made small in it, and what is filed is followed to the release it began in.

The same story is told with a service that lives through it, and with services that are killed in it: what is
to be read on GitHub must be the same each time.
"""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.github.repository_double import RepositoryDouble
from tests.github.server import RecordedRequest
from tests.scenarios.deployment import Deployment
from tests.scenarios.fake_toolchain import BAD, GOOD, OTHER

#: What differs between two lives that did the same: when, and how long it took.
_VOLATILE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ|\d+(\.\d+)? (ms|s|min)\b")


@dataclass(frozen=True)
class KillPoint:
    """When the service is killed: `after_s` seconds into the story, or once GitHub has done write `number`.

    Neither is never.
    """

    after_s: float | None = None
    number: int | None = None


@dataclass(frozen=True)
class LifecycleResult:
    """What a telling left: `told` for comparison, how many writes GitHub saw, seconds, lives."""

    told: Any
    writes: int
    seconds: float
    starts: int


def run_lifecycle(folder: Path, kill_point: KillPoint = KillPoint()) -> LifecycleResult:
    """Tells the story once, with one kill; a moment that comes after its end is its end."""
    with Deployment(folder) as deployment:
        began = time.monotonic()
        timer, counter = _plan_kill(deployment, kill_point)
        try:
            _run_steps(deployment)
        finally:
            timer.cancel()
            if timer.is_alive():
                timer.join()  # it may be killing just now
            deployment.hub.watch(None)
        seconds = time.monotonic() - began
        if kill_point != KillPoint() and deployment.starts == 1:
            deployment.kill()
            deployment.wait_until_idle()
        assert deployment.internal_errors() == []
        told = _mask_volatile(deployment.repository().told())
        return LifecycleResult(told, counter(), seconds, deployment.starts)


def _run_steps(deployment: Deployment) -> None:
    repository = deployment.repository(thorough=True)
    number = repository.open_pull({"requirements.txt": f"openvino=={BAD}\n"})
    deployment.wait_until_idle()
    repository.comment(number, "octo", "/assay help")
    deployment.wait_until_idle()
    repository.push_pull(number, {"requirements.txt": f"openvino=={OTHER}\n"})
    deployment.wait_until_idle()
    repository.merge_pull(number)
    deployment.wait_until_idle()
    for turn, release in enumerate((GOOD, GOOD, OTHER)):
        _pin(repository, release, f"Note {turn}")
        deployment.wait_until_idle()


def _pin(repository: RepositoryDouble, release: str, note: str) -> None:
    files = {"requirements.txt": f"openvino=={release}\n", "NOTES.md": note}
    repository.commit(files, message=note)


def _plan_kill(deployment: Deployment, kill_point: KillPoint) -> tuple[threading.Timer, Callable[[], int]]:
    """Plans the kill; the timer to be cancelled, and how many writes there were."""
    writes: list[RecordedRequest] = []

    def count(seen: RecordedRequest) -> None:
        if seen.method == "GET" or not seen.path.startswith("/repos/"):
            return
        writes.append(seen)
        if len(writes) == kill_point.number:
            deployment.kill()

    deployment.hub.watch(count)
    timer = threading.Timer(kill_point.after_s or 0.0, deployment.kill)
    if kill_point.after_s is not None:
        timer.start()
    return timer, lambda: len(writes)


def kill_points(seed: int, count: int, seconds: float, writes: int) -> list[KillPoint]:
    """Moments at random, half by the clock and half by the writes GitHub has done."""
    rng = random.Random(seed)
    found = []
    for turn in range(count):
        by_clock = KillPoint(after_s=rng.uniform(0.0, seconds))
        by_write = KillPoint(number=rng.randint(1, writes))
        found.append(by_write if turn % 2 else by_clock)
    return found


def _mask_volatile(value: Any) -> Any:
    if isinstance(value, str):
        return _VOLATILE.sub("…", value)
    if isinstance(value, dict):
        return {name: _mask_volatile(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_mask_volatile(inner) for inner in value]
    return value
