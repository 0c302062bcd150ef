"""A watch over a double of GitHub with one repository, of which everything was told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bot.targets.watch_kit import CONFIG, Watch, watching
from tests.github.people import RepositoryDouble


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[Watch]:
    with watching(tmp_path) as made:
        yield made


@pytest.fixture
def repository(watch: Watch) -> RepositoryDouble:
    """Watched from its first commit on."""
    made = watch.hub.repository("octo/compiler")
    made.commit({".github/assay.yml": CONFIG, "op.cc": "1\n"})
    watch.deliver()
    watch.do("reconcile")
    return made
