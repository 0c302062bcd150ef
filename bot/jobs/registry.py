"""The kinds of jobs by name: one small file each in `bot/jobs/kinds`, registered by decorator (law 4)."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING

from bot.errors import InternalError

if TYPE_CHECKING:
    from datetime import datetime

    from bot.jobs.doing import Doing
    from bot.store import Session
    from bot.store.models import Job

Work = Callable[["Doing"], None]
#: What it means for the rows a job was about that it is given up, and why; in the transaction that says so.
GivenUp = Callable[["Session", "Job", str, "datetime"], None]


class Lane(Enum):
    """What a job waits behind. Each lane has a thread of its own, and one job at a time."""

    QUICK = "quick"  # asks GitHub or git and writes rows: somebody waits for it
    LONG = "long"  # runs compilers: campaigns come first


@dataclass(frozen=True)
class Kind:
    """One kind of job. `work` settles it: `Doing.done`, or raises; `given_up` follows where it raised."""

    name: str
    lane: Lane
    work: Work
    given_up: GivenUp | None = None


_KINDS: dict[str, Kind] = {}


def kind(name: str, lane: Lane = Lane.LONG, given_up: GivenUp | None = None) -> Callable[[Work], Work]:
    """Decorator: makes a function the work of the jobs of this kind."""

    def register(work: Work) -> Work:
        if name in _KINDS:
            raise InternalError(f"two kinds of jobs are called {name!r}")
        _KINDS[name] = Kind(name, lane, work, given_up)
        return work

    return register


@cache
def kinds() -> dict[str, Kind]:
    """All kinds by name."""
    package = importlib.import_module("bot.jobs.kinds")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return dict(_KINDS)


def of_lane(lane: Lane) -> tuple[str, ...]:
    """The names of the kinds of a lane."""
    return tuple(sorted(name for name, each in kinds().items() if each.lane is lane))
