"""Fixtures: a double, a manual clock, and a repository with two commits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.github.double import GitHubDouble
from tests.github.repository_double import RepositoryDouble


@dataclass
class Clock:
    """A clock that is set manually."""

    now: datetime = datetime(2026, 11, 20, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **by: float) -> None:
        self.now += timedelta(**by)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def hub(tmp_path: Path, clock: Clock) -> Iterator[GitHubDouble]:
    with GitHubDouble(tmp_path, clock) as made:
        yield made


@pytest.fixture
def repository(hub: GitHubDouble) -> RepositoryDouble:
    made = hub.repository("octo/compiler")
    made.commit({"op.cc": "1\n", "docs/a.md": "a\n"})
    made.commit({"op.cc": "1\n2\n"})
    return made
