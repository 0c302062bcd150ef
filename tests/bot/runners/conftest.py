"""What the tests of runners share: a user's cache folder for the machines of pools, and a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bot.runners.pool_helpers import ray_cluster


@pytest.fixture(scope="session", autouse=True)
def user_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The user's cache folder, where machines keep what they may use again."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder


@pytest.fixture(scope="session")
def cluster(user_cache: Path) -> Iterator[Any]:
    """A Ray cluster of three nodes of one core; whoever removes a node adds one."""
    with ray_cluster(3) as made:
        yield made
