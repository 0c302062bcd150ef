"""`assay prioritize`: which cases would run first, and why."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from bot.cli.campaigns.prioritize import _reason
from fuzzing.cases import Corpus
from tests.bot.cli.command_helpers import GOOD, SOURCE, WRONG, CommandResult, add_case, assay

WriteCatalogue = Callable[..., Path]


CASES = [GOOD, WRONG, add_case("test_add_other", wrong=1.0)]
DIFF = """\
--- a/src/frontends/onnx/frontend/src/op/add.cpp
+++ b/src/frontends/onnx/frontend/src/op/add.cpp
@@ -10,3 +10,3 @@ ov::OutputVector add(const ov::frontend::onnx::Node& node) {
 {
-    return {std::make_shared<v1::Add>(a, b)};
+    return {std::make_shared<v1::Add>(b, a)};
 }
"""


def ranked(data: Path, *argv: str | Path) -> CommandResult:
    return assay(data, "prioritize", "--backend", "openvino", "--source", SOURCE, *argv)


def test_a_ranking_as_json(catalogue_of: WriteCatalogue, tmp_path: Path) -> None:
    data = catalogue_of(*CASES)
    ran = ranked(data, "--strategy", "source-order", "--json")
    assert ran.code == 0, ran.err
    result = ran.result
    assert [(one["rank"], one["id"]) for one in result["top"]] == [(n, c.id) for n, c in enumerate(CASES, 1)]
    assert result["top"][0] | {"id": ""} == {
        "rank": 1,
        "id": "",
        "operator": "Add",
        "test": "test_add_good",
        "source": SOURCE,
    }
    assert (result["strategy"], result["seed"], result["cases"]) == ("source-order", 0, 3)
    assert (result["change"], result["history"]) == (None, None)
    (tmp_path / "change.diff").write_text(DIFF)
    changed = ranked(
        data, "--strategy", "random", "--diff", tmp_path / "change.diff", "--top", "1", "--json"
    ).result
    assert len(changed["top"]) == 1
    assert (changed["change"]["files"], changed["change"]["truncated"]) == (1, False)


def test_a_ranking_by_coverage_and_options_of_the_strategy(
    catalogue_of: WriteCatalogue, tmp_path: Path
) -> None:
    data, coverage = catalogue_of(*CASES), tmp_path / "coverage.jsonl"
    lines = [
        {"event": "covered", "id": one.id, "files": {"add.py": list(range(number))}}
        for number, one in enumerate(CASES)
    ]
    coverage.write_text("".join(json.dumps(line) + "\n" for line in lines))
    by_coverage: list[str | Path] = ["--strategy", "coverage-additional", "--coverage", coverage]
    result = ranked(data, *by_coverage, "--json").result
    assert [one["id"] for one in result["top"]] == [one.id for one in reversed(CASES)]
    wrong = ranked(data, *by_coverage, "--option", "coverage.additional=banana")
    assert wrong.code == 2
    assert "coverage.additional is greedy or released, not 'banana'" in wrong.err


def test_a_ranking_for_people(catalogue_of: WriteCatalogue) -> None:
    ran = ranked(catalogue_of(*CASES), "--strategy", "source-order", "--top", "2")
    assert ran.code == 0, ran.err
    head, first, second, *_ = ran.out.splitlines()
    assert head.split() == ["rank", "case", "operator", "test"]
    assert first.split() == ["1", GOOD.id[:12], "Add", "test_add_good"]
    assert second.split() == ["2", WRONG.id[:12], "Add", "test_add_wrong"]
    assert "and 1 more; use --top to show them" in ran.out
    assert "3 cases ranked in" in ran.out
    assert "Cases ordered by strategy source-order, using the compiler's own tests" in ran.out


def test_a_change_between_two_commits_as_its_diff(catalogue_of: WriteCatalogue, tmp_path: Path) -> None:
    repository = tmp_path / "code"
    repository.mkdir()
    git = ["git", "-C", str(repository), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    subprocess.run([*git, "init", "--quiet"], check=True)
    for text in ("a\n", "b\n"):
        (repository / "add.cpp").write_text(text)
        subprocess.run([*git, "add", "--all"], check=True)
        subprocess.run([*git, "commit", "--quiet", "--message=x"], check=True)
    data = catalogue_of(*CASES)
    by_range = ranked(data, "--strategy", "random", "--repo", repository, "--range", "HEAD~1..HEAD", "--json")
    assert by_range.code == 0, by_range.err
    assert by_range.result["change"]["files"] == 1
    diff = subprocess.run([*git, "diff", "HEAD~1", "HEAD"], check=True, capture_output=True, text=True).stdout
    (tmp_path / "x.diff").write_text(diff)
    by_diff = ranked(data, "--strategy", "random", "--diff", tmp_path / "x.diff", "--json").result
    assert by_diff["top"] == by_range.result["top"]


def test_the_cases_of_a_folder_are_ranked(tmp_path: Path) -> None:
    corpus = Corpus(tmp_path / "mine")
    for case in CASES:
        corpus.add(case)
    argv = ("--backend", "openvino", "--cases", corpus.root, "--strategy", "source-order", "--json")
    ran = assay(tmp_path / "data", "prioritize", *argv)
    assert ran.code == 0, ran.err
    assert [one["id"] for one in ran.result["top"]] == sorted(case.id for case in CASES)


def test_reasons_in_a_line() -> None:
    why = {
        "touched": ["resize.cpp: its converter was changed", "b", "c"],
        "weight": 0.5,
        "place": 0,
        "exploring": True,
        "history": {"runs": 3, "findings": 2, "last_finding_days": 4.2},
        "new": ["a", "b", "c", "d", "e"],
        "seconds": None,
    }
    assert _reason(why) == (
        "resize.cpp: its converter was changed; b; and 1 more; failed 2 of 3 times, last 4 days ago; "
        "weight 0.5; exploring; new a, b, c, d, and 1 more"
    )
    assert _reason({"history": {"runs": 0, "findings": 0}, "touched": []}) == ""


@pytest.mark.compiler_openvino
def test_what_a_change_touches_comes_first_and_says_so(tmp_path: Path) -> None:
    """Among ONNX's simple tests, collected for this, one is about Shrink."""
    (tmp_path / "x.diff").write_text(DIFF.replace("add", "shrink").replace("Add", "Shrink"))
    argv = ("prioritize", "--backend", "openvino", "--source", "onnx-simple-tests", "--diff", "x.diff")
    ran = assay(tmp_path, *argv, "--explain", "--json")
    assert ran.code == 0, ran.err
    result = ran.result
    assert (result["strategy"], result["change"]["files"]) == ("change", 1)
    first = result["top"][0]
    assert first["operator"] == "Shrink"
    assert "shrink.cpp" in " ".join(first["why"]["touched"])


@pytest.mark.parametrize(
    ("argv", "helps"),
    [
        (["--strategy", "oprea"], "did you mean 'opera'?"),
        (["--source", "onnx-node-test"], "onnx-node-tests"),
        (["--repo", "."], "--repo needs --range BASE..HEAD"),
        (["--range", "HEAD", "--repo", "."], "write BASE..HEAD"),
        (["--range", "a..b", "--repo", "."], "has no commit a"),
        (["--diff", "no.diff"], "no.diff"),
        (["--cases", ".", "--source", "onnx-node-tests"], "keep one"),
    ],
)
def test_mistakes(argv: list[str], helps: str, tmp_path: Path) -> None:
    ran = assay(tmp_path, "prioritize", "--backend", "openvino", *argv)
    assert (ran.code, ran.out) == (2, ""), ran.err
    assert helps in ran.err
    assert not (tmp_path / "corpus").exists()


def test_what_is_no_change(tmp_path: Path) -> None:
    for text, helps in (("hello", "git diff BASE HEAD"), (json.dumps({"files": []}), "not a change as JSON")):
        (tmp_path / "x.diff").write_text(text)
        ran = assay(tmp_path, "prioritize", "--backend", "openvino", "--diff", "x.diff")
        assert ran.code == 2
        assert helps in ran.err
