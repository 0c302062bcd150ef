"""`assay run --reduce`: a campaign that makes failing cases small, on a real compiler with a real bug.

OpenVINO 2026.4.1 refuses ONNX's QuantizeLinear by blocks.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import onnx.parser
import pytest

from fuzzing.cases import Corpus, OnnxModel, Provenance, Tensor, TestCase
from tests.bot.cli.command_helpers import GOOD, assay

pytestmark = pytest.mark.compiler_openvino

CONSTANTS = "<float[2,2] scale = {1, 1, 1, 1}>"
BLOCKS = "QuantizeLinear<axis=1, block_size=2>"


def graph(body: str) -> TestCase:
    text = f"g (float[2,4] x) => (float[2,4] y) {CONSTANTS} {{ {body} }}"
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {text}')
    given = (("x", Tensor.of(np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4))),)
    return TestCase(OnnxModel(model.SerializeToString()), given, Provenance("tests", "g", "", "onnx", "1"))


FIRST = graph(f"a = Relu(x) b = {BLOCKS}(a, scale) y = Cast<to=1>(b)")
SECOND = graph(f"a = Abs(x) b = Sin(a) c = {BLOCKS}(b, scale) d = Cast<to=1>(c) y = Exp(d)")


@pytest.mark.slow
def test_failures_of_one_cause_become_one_bug_with_a_small_case(tmp_path: Path) -> None:
    cases = tmp_path / "cases"
    for case in (GOOD, FIRST, SECOND):
        Corpus(cases).add(case)
    given = ("--backend", "openvino", "--cases", cases, "--repeats", "1", "--workers", "1", "--json")
    ran = assay(tmp_path, "run", *given, "--reduce", "1", "--report", tmp_path / "report")
    assert ran.code == 1, ran.err
    [bug] = ran.result["groups"]
    assert bug["title"].startswith("[ONNX] QuantizeLinear: conversion fails"), "its pattern, not its test"
    assert (bug["cases"], bug["classification"]) == (2, "inconclusive")
    assert bug["reduction"]["from"] == FIRST.id, "the smaller program is reduced"
    assert "3 → 1 operators" in bug["reduction"]["history"]
    assert {row["case"] for row in bug["shown"]} == {FIRST.id, SECOND.id}, (
        "the one that was not reduced has joined: its program holds a QuantizeLinear"
    )
    assert bug["tried"] == 1, "its reproducer has shown the bug, without Assay"
    assert ran.result["headline"] == "1 kind of failure: 2 of 3 cases fail"
    assert ran.result["noise"] == {"differed": 0, "runs": 1}
    assert sorted(Corpus(cases).ids()) == sorted([GOOD.id, FIRST.id, SECOND.id]), "nothing is added to it"
    again = shlex.split(bug["replay"])[1:]
    assert again[1] != FIRST.id[:16], "it is of the small case"
    replayed = assay(tmp_path, *again, "--json")
    assert replayed.result["toolchains"][0]["verdict"] == "crash", "what a report says can be done"
    text = (tmp_path / "report" / "report.md").read_text()
    assert "Reduced: 3 → 1 operators" in text
    assert "0 of 1 passing case gave a different verdict" in text
    script = (tmp_path / "report" / bug["reproducer"]).read_text()
    assert "onnx.parser.parse_model" in script
    assert script.count("\n") <= 25
    assert "which made the program small" in (tmp_path / "report" / bug["guarded"]).read_text()

    shown = assay(tmp_path, "run", *given[:-1], "--reduce", "1")
    [line] = [line for line in shown.out.splitlines() if line.startswith("next: assay")]
    assert again[1] in line
    assert "--corpus" not in line
    plain = assay(tmp_path, "run", *given)
    assert [group["reduction"] for group in plain.result["groups"]] == [None], "nothing is made small unasked"
