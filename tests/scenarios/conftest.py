"""One GitHub and one service for all scenarios of a file; each scenario has a repository of its own."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.github.repository_double import RepositoryDouble
from tests.scenarios.deployment import Deployment


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where a scenario fails, its report says what the service did."""
    report = yield
    given: dict[str, Any] = getattr(item, "funcargs", {})
    deployment = given.get("own_deployment") or given.get("deployment")
    if report.failed and isinstance(deployment, Deployment):
        repository: RepositoryDouble | None = given.get("repository")
        report.sections.append(
            ("what happened", deployment.describe_activity(repository.name if repository else ""))
        )
    return report


@pytest.fixture(scope="module")  # a service in a hurry is never idle: it must end with its scenarios
def shared_deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with Deployment(tmp_path_factory.mktemp("scenarios")) as made:
        yield made


@pytest.fixture
def deployment(shared_deployment: Deployment) -> Iterator[Deployment]:
    """The service, in whose log no bug of ours may stand after a scenario."""
    begun = len(shared_deployment.log())
    yield shared_deployment
    assert shared_deployment.internal_errors(begun) == []
    assert shared_deployment.hub.violations == []


@pytest.fixture
def repository(deployment: Deployment, request: pytest.FixtureRequest) -> RepositoryDouble:
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", request.node.name.removeprefix("test_"))
    return deployment.repository(f"octo/{name[:80]}")


@pytest.fixture
def own_deployment(tmp_path: Path) -> Iterator[Deployment]:
    """A service that a scenario may kill."""
    with Deployment(tmp_path) as made:
        yield made
        assert made.internal_errors() == []
