"""One GitHub and one service for all scenarios of a file; each scenario has a repository of its own."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.github.people import RepositoryDouble
from tests.scenarios.stage import Stage


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where a scenario fails, its report says what the service did."""
    report = yield
    given: dict[str, Any] = getattr(item, "funcargs", {})
    stage = given.get("own_stage") or given.get("stage")
    if report.failed and isinstance(stage, Stage):
        repository: RepositoryDouble | None = given.get("repository")
        report.sections.append(("what happened", stage.account(repository.name if repository else "")))
    return report


@pytest.fixture(scope="module")  # a service in a hurry is never idle: it must end with its scenarios
def theatre(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with Stage(tmp_path_factory.mktemp("scenarios")) as made:
        yield made


@pytest.fixture
def stage(theatre: Stage) -> Iterator[Stage]:
    """The service, in whose log no bug of ours may stand after a scenario."""
    begun = len(theatre.log())
    yield theatre
    assert theatre.bugs(begun) == []
    assert theatre.hub.violations == []


@pytest.fixture
def repository(stage: Stage, request: pytest.FixtureRequest) -> RepositoryDouble:
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", request.node.name.removeprefix("test_"))
    return stage.repository(f"octo/{name[:80]}")


@pytest.fixture
def own_stage(tmp_path: Path) -> Iterator[Stage]:
    """A service that a scenario may kill."""
    with Stage(tmp_path) as made:
        yield made
        assert made.bugs() == []
