"""`assay demo`, whole: two real releases from the package index, one signed push, real reports."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from fuzzing.triage.title import MAX_TITLE
from tests.bot.cli.command_helpers import assay

pytestmark = [pytest.mark.network, pytest.mark.compiler_openvino]


@pytest.mark.slow
def test_the_demo_ends_with_the_regression_rendered(tmp_path: Path) -> None:
    ran = assay(tmp_path / "data", "demo", "--json", "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    result = ran.result
    assert result["toolchains"] == {"base": "openvino 2024.0.0", "head": "openvino 2026.4.1"}
    assert result["ran"]["head"] > 1000
    titles = [one["title"] for one in result["regressions"]]
    assert any("[ONNX]" in title and " conversion fails: " in title for title in titles)
    assert any("split" in title.lower() for title in titles), "which the newer one does otherwise"
    assert all(len(title) <= MAX_TITLE and "#" not in title for title in titles)
    for one in result["regressions"]:
        ast.parse(Path(one["reproducer"]).read_text())
    # What is met on the way of another reduction is told in the report and not filed.
    assert 1 <= len(result["issues"]) <= len(titles)
    assert any("AffineGrid" in Path(path).read_text() for path in result["issues"])
    assert len(result["check_runs"]) == 1
    assert Path(result["report"]).is_file()
    for line in ("delivered a signed push", "running cases at base"):
        assert line in ran.err


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    kept = tmp_path / "home" / "repositories" / "mine"
    kept.mkdir(parents=True)
    ran = assay(tmp_path / "data", "demo", "--out", tmp_path / "home")
    assert (ran.code, "is not an earlier demo's" in ran.err) == (2, True)
    assert kept.is_dir()


@pytest.mark.slow
def test_a_release_that_is_not_there_is_exit_code_3(tmp_path: Path) -> None:
    ran = assay(tmp_path / "data", "demo", "--json", "--head", "1.2.3", "--out", tmp_path / "out")
    assert ran.code == 3
    assert "openvino 1.2.3 cannot be installed" in json.loads(ran.out)["error"]["what"]
    assert "openvino 1.2.3 cannot be installed" in ran.err


def test_a_folder_that_cannot_be_made_is_exit_code_2(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ran = assay(tmp_path / "data", "demo", "--out", tmp_path / "file" / "out")
    assert (ran.code, "cannot be written" in ran.err) == (2, True)
