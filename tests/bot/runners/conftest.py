"""What the tests of runners share: a user's cache folder for the machines of pools, and a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.bot.runners.pool_helpers import ray_cluster


@pytest.fixture(scope="session")
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder for the tests of runners; those of other folders keep the user's own."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def user_cache(cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache folder, where machines keep what they may use again."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache_folder))
    return cache_folder


@pytest.fixture(scope="module")  # its daemons are busy as long as they live
def cluster(cache_folder: Path) -> Iterator[Any]:
    """A Ray cluster of three nodes of one core; whoever removes a node adds one."""
    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_CACHE_HOME", str(cache_folder))  # its processes inherit it
            made = stack.enter_context(ray_cluster(3))
        yield made
