"""`assay generate`: models from the command line, which `assay run` then runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzzing.cases import Corpus
from tests.bot.cli.command_helpers import assay


@pytest.mark.slow
def test_what_is_generated_can_be_run(tmp_path: Path) -> None:
    models = tmp_path / "models"
    requested = (
        "generate",
        "--count",
        "12",
        "--nodes",
        "1:5",
        "--operators",
        "Add,Relu,MatMul",
        "--seed",
        "3",
    )
    ran = assay(tmp_path, *requested, "--out", models, "--json")
    assert ran.code == 0, ran.err
    assert (ran.result["models"], ran.result["generator"], ran.result["seed"]) == (12, "isra", 3)
    assert ran.result["out"] == str(models)
    assert ran.result["measured"]["metrics"]["OTC"]["paper"]["value"] == 1.0
    assert len(list(Corpus(models).ids())) == ran.result["new"]
    again = assay(tmp_path, *requested, "--out", models, "--jobs", "2", "--no-metrics", "--json")
    assert (again.result["new"], again.result["measured"]) == (0, None)
    run = assay(
        tmp_path,
        "run",
        "--backend",
        "onnxruntime",
        "--cases",
        models,
        "--budget",
        "5m",
        "--json",
        "--no-cache",
    )
    assert run.code == 0, run.err
    assert run.result["verdicts"]["head"] == {"pass": ran.result["new"]}


def test_what_people_see(tmp_path: Path) -> None:
    ran = assay(
        tmp_path, "generate", "--count", "3", "--out", "mine", "--operators", "isra", "--concatenate-outputs"
    )
    assert ran.code == 0, ran.err
    first, rates, against, header, *rows, last = ran.out.splitlines()
    assert first.startswith("3 models of ")
    assert first.endswith(" by isra, 3 of them new in mine")
    assert "nodes/s of generating and writing alone" in rates
    assert against.strip() == "measured against the operator set isra:"
    assert header.split()[:3] == ["metric", "paper", "released"]
    assert [row.split()[0] for row in rows][:3] == ["OTC", "IDC", "ODC"]
    assert last == "run them with: assay run --backend BACKEND --cases mine"
    assert len(list(Corpus(tmp_path / "mine").ids())) == 3


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--nodes", "4:2"), "--nodes 4:2: write the least and the most"),
        (("--generator", "foo"), "no generator is called 'foo'; there are: "),
        (("--backend", "onnx_reference"), "--backend onnx_reference: a reference, not a compiler"),
        (("--backend", "foo"), "no backend is called 'foo'"),
        (("--count", "0"), "--count"),
    ],
)
def test_bad_input_is_told(tmp_path: Path, words: tuple[str, ...], says: str) -> None:
    ran = assay(tmp_path, "generate", "--count", "2", "--out", "mine", *words)
    assert ran.code == 2
    assert ran.err.count(says) == 1
    assert not (tmp_path / "mine").exists()
