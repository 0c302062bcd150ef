"""`assay triage`: failing cases told apart, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx.parser
import pytest

from fuzzing.cases import Corpus, OnnxModel, Provenance, Tensor, TestCase
from tests.bot.cli.command_helpers import GOOD, WRONG, assay

BACKEND = str(Path(__file__).parents[2] / "fuzzing" / "reduce" / "faulty_backend.py")
ELU = ("--backend", BACKEND, "--option", "fault=crash-elu")
pytestmark = pytest.mark.compiler_onnxruntime


def graph(text: str) -> TestCase:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> g {text}')
    given = (("x", Tensor.of(np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3))),)
    return TestCase(OnnxModel(model.SerializeToString()), given, Provenance("tests", "g", "", "onnx", "1"))


FIRST = graph("(float[2,3] x) => (float[2,3] y) { a = Relu(x) b = Elu<alpha = 0.5>(a) y = Tanh(b) }")
SECOND = graph("(float[2,3] x) => (float[3,2] y) { a = Transpose(x) b = Sin(a) y = Elu(b) }")
SLICED = graph(
    "(float[2,3] x) => (float[2,2] y) <int64[1] s = {0}, int64[1] e = {2}, int64[1] a = {1}>"
    " { y = Slice(x, s, e, a) }"
)
CASES = (GOOD, WRONG, FIRST, SECOND)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for case in CASES:
        Corpus(tmp_path / "cases").add(case)
    return tmp_path


@pytest.mark.slow
def test_bugs_are_told_apart_and_a_second_try_runs_no_reduction_again(data: Path) -> None:
    ran = assay(data, "triage", data / "cases", *ELU, "--json")
    assert ran.code == 1, ran.err
    result = ran.result
    assert (result["cases"], result["failing"], result["distinct"], result["strategy"]) == (
        4,
        3,
        2,
        "signature",
    )
    elu, wrong = result["bugs"]
    assert sorted(elu["cases"]) == sorted([FIRST.id, SECOND.id])
    assert (elu["fields"]["operator"], elu["fields"]["needs"], elu["reduced"]) == ("", [], True)
    assert (wrong["cases"], wrong["case"], wrong["reduced"]) == ([WRONG.id], WRONG.id, False)
    kept = Corpus(data / "triage" / "corpus").get(elu["case"])
    assert kept.program.to_bytes() != FIRST.program.to_bytes()
    assert result["runs"] == _known(data)
    again = assay(data, "triage", data / "cases", *ELU)
    assert again.code == 1, again.err
    first, where, second, elsewhere, end = again.out.splitlines()
    assert first.startswith("   2 cases  [ONNX] Elu: conversion fails: ValueError: converter of Elu")
    assert second == "   1 case   [ONNX] Add: missing outputs, wrong values"
    assert (where.strip(), elsewhere.strip()) == (
        str(data / "triage" / "corpus" / elu["case"][:2] / elu["case"]),
        str(data / "cases" / WRONG.id[:2] / WRONG.id),
    )
    assert end.startswith("2 bugs in 3 failing of 4 cases, by signature, ")
    assert result["runs"] == _known(data), "what the first try learnt was not asked again"


def _known(data: Path) -> int:
    """How many candidates the journals tell of."""
    journals = (data / "triage" / "journals").glob("*.jsonl")
    return sum(path.read_bytes().count(b"\n") for path in journals)


def test_of_the_cases_that_a_run_named_no_others_are_taken(data: Path) -> None:
    rows = [{"case": FIRST.id}, {"case": SECOND.id}]
    report = data / "run.json"
    report.write_text(json.dumps({"groups": [{"example": rows[0], "shown": rows}]}), encoding="utf-8")
    ran = assay(
        data, "triage", data / "cases", *ELU, "--from", report, "--no-reduce", "--strategy", "gbft", "--json"
    )
    assert ran.code == 1, ran.err
    assert (ran.result["cases"], ran.result["distinct"], ran.result["runs"]) == (2, 1, 0)


def test_what_a_run_has_seen_of_this_compiler_is_not_run_again(data: Path) -> None:
    keep = ("--no-reduce", "--json")
    [bug, _] = assay(data, "triage", data / "cases", *ELU, *keep, "--strategy", "opera").result["bugs"]
    seen = bug["outcome"] | {"case": GOOD.id}  # a case that passes: only from here can it be known to fail
    report = data / "run.json"
    for outcome, failing in ((seen, 1), (seen | {"toolchain": "another"}, 0)):
        groups = [{"example": {"case": GOOD.id, "head": outcome}, "shown": []}]
        report.write_text(json.dumps({"groups": groups}), encoding="utf-8")
        ran = assay(data, "triage", data / "cases", *ELU, "--from", report, *keep)
        assert (ran.result["cases"], ran.result["failing"]) == (1, failing), ran.err


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--strategy", "none"), "no strategy of triage is called 'none'"),
        (("--from", "cases.json"), "not the output of `assay run --json`"),
    ],
)
def test_nonsense_is_the_callers_mistake(data: Path, arguments: tuple[str, ...], why: str) -> None:
    (data / "cases.json").write_text("[]", encoding="utf-8")
    ran = assay(data, "triage", data / "cases", *ELU, *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert why in ran.err


def test_a_folder_without_cases_is_the_callers_mistake(tmp_path: Path) -> None:
    ran = assay(tmp_path / "data", "triage", tmp_path, *ELU)
    assert ran.code == 2
    assert "there are no cases" in ran.err


def test_bugs_of_one_operator_are_told_apart_by_what_they_need(tmp_path: Path) -> None:
    Corpus(tmp_path / "cases").add(SLICED)
    ran = assay(tmp_path, "triage", tmp_path / "cases", "--backend", BACKEND, "--option", "fault=wrong-slice")
    title, needs, _, _ = ran.out.splitlines()
    assert (title, needs) == ("   1 case   [ONNX] Slice: wrong values", "            with Slice.axes, rank 2")


def test_where_nothing_fails_nothing_is_told(tmp_path: Path) -> None:
    Corpus(tmp_path / "cases").add(GOOD)
    ran = assay(tmp_path, "triage", tmp_path / "cases", *ELU)
    assert ran.code == 0, ran.err
    assert ran.out.startswith("0 bugs in 0 failing of 1 cases")
