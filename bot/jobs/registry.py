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
    from bot.jobs.doing import Doing

Work = Callable[["Doing"], None]


class Lane(Enum):
    """What a job waits behind. Each lane has a thread of its own, and one job at a time."""

    QUICK = "quick"  # asks GitHub or git and writes rows: somebody waits for it
    LONG = "long"  # runs compilers: campaigns come first


@dataclass(frozen=True)
class Kind:
    """One kind of job. `work` settles it: `Doing.done`, or raises."""

    name: str
    lane: Lane
    work: Work


_KINDS: dict[str, Kind] = {}


def kind(name: str, lane: Lane = Lane.LONG) -> Callable[[Work], Work]:
    """Decorator: makes a function the work of the jobs of this kind."""

    def register(work: Work) -> Work:
        if name in _KINDS:
            raise InternalError(f"two kinds of jobs are called {name!r}")
        _KINDS[name] = Kind(name, lane, work)
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
