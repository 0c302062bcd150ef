from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bot.pulls.pulls_kit import PullHarness


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[PullHarness]:
    made = PullHarness(tmp_path)
    yield made
    made.database.close()
