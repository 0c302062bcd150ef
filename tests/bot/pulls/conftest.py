from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bot.pulls.pulls_kit import Room


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    made = Room(tmp_path)
    yield made
    made.database.close()
