"""The part of a target's configuration that is stored in rows, read from its default branch.

A campaign uses the configuration of its own commit. Schedules and merge queues have no commit of their own or
cannot wait for it, and use these rows.
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
    """The used part of `bot.config.RepositoryConfig`."""

    @property
    def branches(self) -> Sequence[str] | None:
        """Patterns of branches; None for the default branch alone."""

    @property
    def pull_requests(self) -> PullRequests:
        """The section `pull_requests`."""

    @property
    def schedules(self) -> Mapping[str, Any]:
        """The schedules, by name."""


def build_policy(config: Config | None, commit: str) -> dict[str, Any]:
    """The policy of a configuration read at `commit`; None for a repository without one."""
    branches = config.branches if config is not None else None
    return {
        "branches": list(branches) if branches is not None else None,
        "gate": config.pull_requests.gate if config is not None else False,
        "commit": commit,
    }


def build_schedules(
    config: Config | None, known: Sequence[Mapping[str, Any]], at: datetime
) -> list[dict[str, Any]]:
    """The rows' form of schedules. One with an unchanged cron line keeps its next time."""
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
    """The configuration fields that a schedule overrides."""
    return {key: schedule[key] for key in ("budget", "sources") if schedule[key] is not None}


def is_due(schedule: Mapping[str, Any], at: datetime) -> bool:
    """Whether its time is reached."""
    return bool(schedule["next"]) and datetime.fromisoformat(schedule["next"]) <= at


def next_time(line: str, after: datetime) -> str:
    """The first time of a cron line after `after`, in UTC; "" if there is none (30 February)."""
    found = cron.next_time(line, after)
    return found.isoformat() if found is not None else ""
