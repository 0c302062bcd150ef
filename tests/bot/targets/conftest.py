"""A watch over a double of GitHub with one repository, of which everything was told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bot.targets.targets_kit import CONFIG, TargetHarness, open_harness
from tests.github.repository_double import RepositoryDouble


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[TargetHarness]:
    with open_harness(tmp_path) as made:
        yield made


@pytest.fixture
def repository(watch: TargetHarness) -> RepositoryDouble:
    """Watched from its first commit on."""
    made = watch.hub.repository("octo/compiler")
    made.commit({".github/assay.yml": CONFIG, "op.cc": "1\n"})
    watch.deliver()
    watch.do("reconciliation")
    return made
