"""Job kinds by name: one file each in `bot/bugs/jobs`, `bot/pulls/jobs`, `bot/targets/jobs`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from fuzzing.registry import Registry

if TYPE_CHECKING:
    from datetime import datetime

    from bot.jobs.job_context import JobContext
    from bot.store import Session
    from bot.store.models import Job

Work = Callable[["JobContext"], None]
#: What it means for the rows a job was about that it is given up, and why; in the transaction that says so.
OnGivenUp = Callable[["Session", "Job", str, "datetime"], None]


class Lane(Enum):
    """What a job waits behind. Each lane has a thread of its own, and one job at a time."""

    QUICK = "quick"  # asks GitHub or git and writes rows: somebody waits for it
    LONG = "long"  # runs compilers: campaigns come first


@dataclass(frozen=True)
class JobKind:
    """One job kind.

    work      settles it, as `JobContext.done` does, or raises
    on_given_up  follows where it raised
    answers   whether a person who asked for it in a thread is told there if it is given up
    """

    name: str
    lane: Lane
    work: Work
    on_given_up: OnGivenUp | None = None
    answers: bool = True


_KINDS: Registry[JobKind] = Registry("job kind", "bot.bugs.jobs", "bot.pulls.jobs", "bot.targets.jobs")


def job_kind(
    name: str, lane: Lane = Lane.LONG, *, on_given_up: OnGivenUp | None = None, answers: bool = True
) -> Callable[[Work], Work]:
    """Decorator: makes a function the work of the jobs of this kind."""

    def register(work: Work) -> Work:
        _KINDS.add(JobKind(name, lane, work, on_given_up, answers), name)
        return work

    return register


def get_job_kind(name: str) -> JobKind:
    """The kind of that name."""
    return _KINDS.get(name)


def kinds_in_lane(lane: Lane) -> tuple[str, ...]:
    """The names of the kinds of a lane. Imports every file."""
    return tuple(name for name in _KINDS.names() if _KINDS.get(name).lane is lane)
