"""`assay collect`: what any command calls of a library becomes cases."""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from fuzzing.cases import Corpus
from tests.bot.cli.command_helpers import assay

SCRIPT = """\
import sys, torch
for size in (2, 3, 3):
    torch.nn.functional.relu(torch.ones(size))
torch.add(torch.ones(2), torch.ones(2), alpha=2)
print("printed by the script")
sys.exit(5)
"""


@pytest.mark.slow
def test_a_command_becomes_cases_that_can_be_run(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    corpus = tmp_path / "mine"
    argv = ("collect", "--library", "torch", "--corpus", corpus, "--name", "x", "--json", "--")
    ran = assay(tmp_path, *argv, sys.executable, "script.py", env={"MINE": "1"})
    assert ran.code == 0, ran.err
    result = ran.result
    assert (result["cases"], result["new"], result["command_exit"], result["processes"]) == (5, 5, 5, 1)
    assert result["by_operator"] == {"nn.functional.relu": 2, "ones": 2, "add": 1}
    assert result["seconds"].keys() == {"command", "recording", "replay"}
    assert 1.0 <= result["overhead"] < 100.0
    catalog = corpus / "catalogs" / "collected-torch-x.jsonl"
    assert result["catalog"] == str(catalog)
    *lines, last = map(json.loads, catalog.read_text().splitlines())
    assert sorted(line["id"] for line in lines) == list(Corpus(corpus).ids())
    assert all(line["instance"]["operator"] == f"torch.{line['operator']}" for line in lines)
    assert last == {"library": f"torch {version('torch')}", "skipped": result["skipped"]}
    assert {case.provenance.source for case in Corpus(corpus)} == {"collected-torch-x"}
    ranked = assay(tmp_path, "prioritize", "--backend", "openvino", "--cases", corpus, "--json")
    assert ranked.code == 0, ranked.err
    assert ranked.result["cases"] == 5


def test_what_people_see(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    ran = assay(tmp_path, "collect", "--library", "torch", "--", sys.executable, "script.py")
    assert ran.code == 0, ran.err
    assert "printed by the script" in ran.err, "the command's own output is shown"
    assert ran.out.startswith("5 cases of 3 operators, 5 of them new; the command exited with 5")
    [most] = [line.strip() for line in ran.out.splitlines() if line.startswith("  most: ")]
    assert set(most.removeprefix("most: ").split(", ")) == {
        "nn.functional.relu 2",
        "ones 2",
        "add 1",
    }
    [folder] = (tmp_path / "collected").iterdir()
    assert f"run them with: assay run --backend BACKEND --cases {folder}" in ran.out


def test_a_command_that_calls_nothing(tmp_path: Path) -> None:
    ran = assay(tmp_path, "collect", "--library", "torch", "--", sys.executable, "-c", "pass")
    assert ran.code == 1, ran.err
    assert "the command did not import torch" in ran.out


@pytest.mark.parametrize(
    ("argv", "helps"),
    [
        ([], "assay collect --library torch -- python -m pytest tests/"),
        (["--library", "torch"], "give a library and a command"),
        (["--library", "troch", "--", "true"], "did you mean 'torch'?"),
        (["--source", "onnx-nod-tests"], "did you mean 'onnx-node-tests'?"),
        (["--source", "onnx-node-tests", "--", "true"], "keep one"),
    ],
)
def test_mistakes(argv: list[str], helps: str, tmp_path: Path) -> None:
    ran = assay(tmp_path, "collect", *argv)
    assert (ran.code, ran.out) == (2, ""), ran.err
    assert helps in ran.err


def test_sources_are_collected_to_their_end(tmp_path: Path) -> None:
    ran = assay(tmp_path, "collect", "--source", "onnx-simple-tests", "--json")
    assert ran.code == 0, ran.err
    [result] = ran.result["sources"]
    assert (result["source"], result["parts"], result["whole"], result["failed"]) == (
        "onnx-simple-tests",
        1,
        1,
        "",
    )
    assert result["cases"] > 10
    shown = assay(tmp_path, "collect", "--source", "onnx-simple-tests")
    assert shown.out.startswith(f"onnx-simple-tests: {result['cases']} cases from onnx {version('onnx')}, ")


def test_sources_go_to_the_folder_that_is_named(tmp_path: Path) -> None:
    words = ("collect", "--source", "onnx-simple-tests", "--corpus", str(tmp_path / "kept"), "--json")
    ran = assay(tmp_path / "data", *words)
    assert ran.code == 0, ran.err
    assert len(list((tmp_path / "kept").glob("*/*/case.json"))) == ran.result["sources"][0]["cases"]
    named = assay(tmp_path / "data", "collect", "--source", "onnx-simple-tests", "--name", "mine", "--json")
    assert named.result["sources"][0]["cases"] == ran.result["sources"][0]["cases"]
    assert (tmp_path / "data" / "collected" / "mine" / "catalogs").is_dir()
