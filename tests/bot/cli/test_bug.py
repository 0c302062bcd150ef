"""`assay bugs` and `assay bug`, beside a service's database."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.store import Database, bugs
from tests.bot.cli.command_helpers import assay

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    database = Database(f"sqlite:///{tmp_path}/assay.db")
    database.migrate()
    with database.transaction() as session:
        bugs.record_sighting(
            session, "o/n", "abc1", "[ONNX] Pad: wrong values", NOW, "already broken at base"
        )
        bugs.record_sighting(session, "o/m", "abc2", "[ONNX] Abs: <b>bold</b>", NOW)
    database.close()
    return tmp_path


def test_they_are_listed_and_told_one_by_one(data: Path) -> None:
    listed = assay(data, "bugs", "--target", "o/n", "--json")
    assert listed.code == 0, listed.err
    [result] = json.loads(listed.out)
    assert (result["target"], result["title"], result["state"]) == ("o/n", "[ONNX] Pad: wrong values", "new")
    page = data / "pages" / "bug.html"
    shown = assay(data, "bug", "abc2", "--html", page)
    assert shown.code == 0, shown.err
    assert shown.out.startswith("bug 2 of o/m: [ONNX] Abs: <b>bold</b>")
    assert "[ONNX] Abs: &lt;b&gt;bold&lt;/b&gt;" in page.read_text()


def test_what_names_none_or_several_says_so(data: Path) -> None:
    none = assay(data, "bug", "77")
    assert (none.code, "unknown bug 77" in none.err) == (2, True)
    several = assay(data, "bug", "abc")
    assert several.code == 2
    assert "abc is ambiguous: 1 (abc1 of o/n), 2 (abc2 of o/m)" in " ".join(several.err.split())


def test_without_a_service_it_says_where_it_looked(tmp_path: Path) -> None:
    ran = assay(tmp_path, "bugs")
    assert ran.code == 2
    assert "ASSAY_DATA_DIR" in ran.err
