"""What a repository's configuration, on its default branch, says of when it is tested.

The configuration of a campaign is the one at its own commit. What starts campaigns without a commit of
their own (a schedule), or must be answered before anybody can read one (a merge queue), goes by the default
branch, and rows keep what it says there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from bot.config import cron


class PullRequests(Protocol):
    """`pull_requests` of a configuration."""

    @property
    def gate(self) -> bool:
        """Whether a regression fails the check."""


class Schedule(Protocol):
    """One of `schedules`."""

    @property
    def cron(self) -> str:
        """When, as a cron line in UTC."""

    @property
    def budget(self) -> float | None:
        """Seconds; None for the configuration's own."""

    @property
    def sources(self) -> Sequence[str] | None:
        """Where its cases come from; None for the configuration's own."""


class Config(Protocol):
    """What is used of a configuration (`bot.config.RepositoryConfig`)."""

    @property
    def branches(self) -> Sequence[str] | None:
        """Patterns of branches; None for the default branch alone."""

    @property
    def pull_requests(self) -> PullRequests:
        """What is done about pull requests."""

    @property
    def schedules(self) -> Mapping[str, Any]:
        """The schedules, by name."""


def build_policy(config: Config | None, commit: str) -> dict[str, Any]:
    """What rows keep of a configuration, read at `commit`; None is a repository that has none."""
    branches = config.branches if config is not None else None
    return {
        "branches": list(branches) if branches is not None else None,
        "gate": config.pull_requests.gate if config is not None else False,
        "commit": commit,
    }


def build_schedules(
    config: Config | None, known: Sequence[Mapping[str, Any]], at: datetime
) -> list[dict[str, Any]]:
    """The schedules as rows keep them: those whose cron line is as before keep their next time."""
    before = {(one["name"], one["cron"]): one["next"] for one in known}
    found = config.schedules if config is not None else {}
    return [_build_schedule(name, found[name], before, at) for name in sorted(found)]


def _build_schedule(
    name: str, schedule: Schedule, before: Mapping[tuple[str, str], str], at: datetime
) -> dict[str, Any]:
    return {
        "name": name,
        "cron": schedule.cron,
        "budget": schedule.budget,
        "sources": list(schedule.sources) if schedule.sources is not None else None,
        "next": before.get((name, schedule.cron)) or next_time(schedule.cron, at),
    }


def overrides(schedule: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the configuration that hold for the campaigns of a schedule."""
    return {key: schedule[key] for key in ("budget", "sources") if schedule[key] is not None}


def is_due(schedule: Mapping[str, Any], at: datetime) -> bool:
    """Whether its time has come, however long ago."""
    return bool(schedule["next"]) and datetime.fromisoformat(schedule["next"]) <= at


def next_time(line: str, after: datetime) -> str:
    """The first time after `after` that a cron line names, in UTC; "" if there is none (30 February)."""
    found = cron.next_time(line, after)
    return found.isoformat() if found is not None else ""
