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

from tests.github.people import RepositoryDouble
from tests.github.server import Seen
from tests.scenarios.stage import Stage
from tests.scenarios.toolchain import BAD, GOOD, OTHER

#: What differs between two lives that did the same: when, and how long it took.
_PASSING = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ|\d+(\.\d+)? (ms|s|min)\b")


@dataclass(frozen=True)
class Moment:
    """When the service is killed: `after_s` seconds into the story, or once GitHub has done write `number`.

    Neither is never.
    """

    after_s: float | None = None
    number: int | None = None


@dataclass(frozen=True)
class Ending:
    """What a telling left: `told` for comparison, how many writes GitHub saw, seconds, lives."""

    told: Any
    writes: int
    seconds: float
    lives: int


def tell(folder: Path, moment: Moment = Moment()) -> Ending:
    """Tells the story once, with one kill; a moment that comes after its end is its end."""
    with Stage(folder) as stage:
        began = time.monotonic()
        timer, counter = _plan(stage, moment)
        try:
            _happen(stage)
        finally:
            timer.cancel()
            if timer.is_alive():
                timer.join()  # it may be killing just now
            stage.hub.watch(None)
        seconds = time.monotonic() - began
        if moment != Moment() and stage.lives == 1:
            stage.kill()
            stage.quiet()
        assert stage.bugs() == []
        told = _settled(stage.repository().told())
        return Ending(told, counter(), seconds, stage.lives)


def _happen(stage: Stage) -> None:
    repository = stage.repository(thorough=True)
    number = repository.open_pull({"requirements.txt": f"openvino=={BAD}\n"})
    stage.quiet()
    repository.comment(number, "octo", "/assay help")
    stage.quiet()
    repository.push_pull(number, {"requirements.txt": f"openvino=={OTHER}\n"})
    stage.quiet()
    repository.merge_pull(number)
    stage.quiet()
    for turn, release in enumerate((GOOD, GOOD, OTHER)):
        _pin(repository, release, f"Note {turn}")
        stage.quiet()


def _pin(repository: RepositoryDouble, release: str, note: str) -> None:
    files = {"requirements.txt": f"openvino=={release}\n", "NOTES.md": note}
    repository.commit(files, message=note)


def _plan(stage: Stage, moment: Moment) -> tuple[threading.Timer, Callable[[], int]]:
    """Plans the kill; the timer to be cancelled, and how many writes there were."""
    writes: list[Seen] = []

    def count(seen: Seen) -> None:
        if seen.method == "GET" or not seen.path.startswith("/repos/"):
            return
        writes.append(seen)
        if len(writes) == moment.number:
            stage.kill()

    stage.hub.watch(count)
    timer = threading.Timer(moment.after_s or 0.0, stage.kill)
    if moment.after_s is not None:
        timer.start()
    return timer, lambda: len(writes)


def moments(seed: int, count: int, seconds: float, writes: int) -> list[Moment]:
    """Moments at random, half by the clock and half by the writes GitHub has done."""
    draws = random.Random(seed)
    found = []
    for turn in range(count):
        by_clock = Moment(after_s=draws.uniform(0.0, seconds))
        by_write = Moment(number=draws.randint(1, writes))
        found.append(by_write if turn % 2 else by_clock)
    return found


def _settled(value: Any) -> Any:
    if isinstance(value, str):
        return _PASSING.sub("…", value)
    if isinstance(value, dict):
        return {name: _settled(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_settled(inner) for inner in value]
    return value
