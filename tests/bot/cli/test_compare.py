"""`assay compare`: one case on several compilers."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzzing.cases import Corpus
from tests.bot.cli.command_helpers import GOOD, WRONG, assay

pytestmark = pytest.mark.compiler_onnxruntime

ORT = ("--backend", "onnxruntime")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder with one case that passes and one that cannot."""
    corpus = Corpus(tmp_path / "corpus")
    corpus.add(GOOD)
    corpus.add(WRONG)
    return tmp_path


@pytest.mark.slow
@pytest.mark.compiler_openvino
def test_all_that_take_the_case_agree(data: Path) -> None:
    ran = assay(data, "compare", GOOD.id[:12])
    assert ran.code == 0, ran.err
    rows = {line.split()[0]: line for line in ran.out.splitlines() if "with library" in line}
    assert {"onnxruntime", "openvino"} <= rows.keys()
    assert "inductor" not in rows, "it takes no ONNX models"
    assert all(row.split()[1] == "pass" for row in rows.values())
    assert "alone" not in ran.out


def test_over_the_values_of_an_option(data: Path) -> None:
    """The outputs are alike, whatever the case expects: the rows agree, and not with what is expected."""
    levels = ("--option", "optimization=disabled", "--option", "optimization=all")
    ran = assay(data, "compare", WRONG.id[:12], *ORT, *levels, "--json")
    assert ran.code == 1, ran.err
    rows = ran.result["rows"]
    assert [row["label"] for row in rows] == ["onnxruntime optimization=disabled", "onnxruntime"]
    assert [(row["verdict"], row["group"], row["outlier"]) for row in rows] == [
        ("wrong_result", 1, False)
    ] * 2
    assert [row["to_reference"] for row in rows] == [None, None], (
        "an output that is missing is no distance off"
    )
    assert ran.result["outlier"] is None
    alone = assay(data, "compare", WRONG.id[:12], *ORT)
    assert "with none" not in alone.out, "one compiler and one expectation: who is to say"


MISTAKES = {
    "option": (["--option", "optimisation=all"], "did you mean 'optimization'?"),
    "value": ([*ORT, "--option", "optimization=fast"], "is one of all, disabled, basic, extended"),
    "backend of another kind": (
        ["--backend", "inductor"],
        "takes TorchCall, TorchProgram, EquivalentPair, not OnnxModel",
    ),
}


@pytest.mark.parametrize(("argv", "helps"), MISTAKES.values(), ids=MISTAKES.keys())
def test_mistakes_are_exit_code_2(argv: list[str], helps: str, data: Path) -> None:
    ran = assay(data, "compare", GOOD.id[:12], *argv)
    assert (ran.code, ran.out) == (2, "")
    assert helps in ran.err


def test_an_interpreter_without_compilers(data: Path, empty_python: Path) -> None:
    ran = assay(data, "compare", GOOD.id[:12], "--python", empty_python)
    assert (ran.code, ran.out) == (2, "")
    assert "assay doctor" in ran.err
    requested = assay(data, "compare", GOOD.id[:12], *ORT, "--python", empty_python, "--json")
    assert requested.result["rows"][0]["verdict"] == ""
