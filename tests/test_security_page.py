"""docs/security.md: each test that it names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "security.md"
NAMED = sorted(set(re.findall(r"`(?:tests/\w+/)?(test_\w+(?:\.py)?)`", PAGE.read_text(encoding="utf-8"))))
FILES = {path.name: path for path in TESTS.rglob("test_*.py")}


def test_the_page_names_tests() -> None:
    assert len(NAMED) > 30


@pytest.mark.parametrize("name", NAMED)
def test_a_named_test_is_there(name: str) -> None:
    if name.endswith(".py"):
        assert name in FILES
    else:
        assert any(f"def {name}(" in path.read_text(encoding="utf-8") for path in FILES.values())
