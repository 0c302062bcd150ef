"""`assay localize`: where a case goes wrong, from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzzing.cases import Corpus
from tests.bot.cli.command_helpers import GOOD, assay
from tests.fuzzing.localize.localize_kit import LAYERED, unary

pytestmark = pytest.mark.compiler_onnxruntime
FAILING = unary("Neg", "Tanh")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for case in (GOOD, FAILING):
        Corpus(tmp_path / "corpus").add(case)
    return tmp_path


def test_people_are_told_what_is_known_and_how(data: Path) -> None:
    ran = assay(data, "localize", FAILING.id[:12], "--backend", LAYERED, "--method", "stage,subgraph")
    assert ran.code == 1, ran.err
    first, *lines, end = ran.out.splitlines()
    assert first.startswith("wrong_result on layered: output out: 4 of 4 elements are wrong")
    assert [line.split() for line in lines[::2]] == [["stage", "fuse-tanh"], ["subgraph", "Tanh"]]
    assert "right after fold" in lines[1]
    assert "cut out alone, on the library's values, it differs" in lines[3]
    assert "runs, " in end


def test_programs_are_told_the_same_facts(data: Path) -> None:
    folder = Corpus(data / "corpus").folder(FAILING.id)
    ran = assay(data / "elsewhere", "localize", folder, "--backend", LAYERED, "--method", "stage", "--json")
    assert ran.code == 1, ran.err
    [fact] = ran.result["facts"]
    assert (fact["what"], fact["found"], fact["confirmed"]) == ("stage", ["fuse-tanh"], True)
    assert ran.result["id"] == FAILING.id


def test_mistakes_are_the_callers(data: Path) -> None:
    ran = assay(data, "localize", GOOD.id, "--backend", LAYERED)
    assert ran.code == 2
    assert "nothing to localize" in ran.err
    ran = assay(data, "localize", FAILING.id, "--backend", LAYERED, "--method", "stages")
    assert ran.code == 2
    assert "did you mean 'stage'?" in ran.err
