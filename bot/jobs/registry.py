"""Job kinds by name: one file each in the package `jobs` of bugs, proposals, pulls and targets."""

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
#: Updates the rows that a failed job was about, in the transaction that fails it: (session, job, reason,
#: time).
OnGivenUp = Callable[["Session", "Job", str, "datetime"], None]


class Lane(Enum):
    """The queue of a job. Each lane has one thread and runs one job at a time."""

    QUICK = "quick"  # reads GitHub or git and writes rows; a person waits
    LONG = "long"  # runs compilers; campaigns come first


@dataclass(frozen=True)
class JobKind:
    """One job kind.

    work         completes the job with `JobContext.done`, or raises
    on_given_up  called after the job failed for good
    answers      whether a failure is replied in the thread where the job was asked for
    """

    name: str
    lane: Lane
    work: Work
    on_given_up: OnGivenUp | None = None
    answers: bool = True


_KINDS: Registry[JobKind] = Registry(
    "job kind", "bot.bugs.jobs", "bot.proposals.jobs", "bot.pulls.jobs", "bot.targets.jobs"
)


def job_kind(
    name: str, lane: Lane = Lane.LONG, *, on_given_up: OnGivenUp | None = None, answers: bool = True
) -> Callable[[Work], Work]:
    """Decorator: registers a function as the work of a job kind."""

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
