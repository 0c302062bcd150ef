from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from fuzzing.cases import Corpus, OnnxModel, Provenance, TestCase
from fuzzing.triage.program_text import MAX_PROGRAM, format_onnx, format_program, main
from fuzzing.triage.traits import Traits


def model(constant: int = 100, operator: str = "MatMul") -> bytes:
    weights = numpy_helper.from_array(np.arange(constant, dtype=np.float32), "w")
    empty = numpy_helper.from_array(np.zeros((0, 30), np.float32), "e")
    inner = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(np.arange(50)))
    branch = helper.make_graph(
        [inner], "b", [], [helper.make_tensor_value_info("c", TensorProto.INT64, [50])]
    )
    nodes = [
        helper.make_node("If", ["p"], ["i"], then_branch=branch, else_branch=branch),
        helper.make_node(operator, ["x", "w"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, constant])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])],
        [weights, empty],
    )
    built = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    data: bytes = built.SerializeToString(deterministic=True)
    return data


GOLDEN = """<
   ir_version: 8,
   opset_import: ["" : 18]
>
g (float[1,100] x) => (float[1] y) 
   <float[100] w =  {…}, float[0,30] e =  {}>
{
   i = If (p) <else_branch: graph = b () => (int64[50] c) {
      c = Constant <value: tensor = int64[50] {…}> ()
   }, then_branch: graph = b () => (int64[50] c) {
      c = Constant <value: tensor = int64[50] {…}> ()
   }>
   y = MatMul (x, w)
}"""  # noqa: W291 - as onnx.printer prints it


def test_long_constants_are_elided() -> None:
    assert format_onnx(model()) == GOLDEN


def test_short_constants_are_shown() -> None:
    assert "float[3] w =  {0,1,2}" in format_onnx(model(constant=3))


def test_long_programs_are_cut() -> None:
    text = format_program(OnnxModel(model(operator="A" * 2 * MAX_PROGRAM)))
    assert len(text) == MAX_PROGRAM
    assert text.endswith("\n… cut here")


def test_other_bytes_are_said_to_be_unreadable() -> None:
    assert format_program(OnnxModel(b"\xff\xff\xff")).startswith("not a readable ONNX model")


@pytest.fixture
def case(tmp_path: Path) -> TestCase:
    made = TestCase(OnnxModel(model()), (), Provenance("test", "t", "If", "onnx", "1"))
    Corpus(tmp_path).add(made)
    return made


def test_the_command(tmp_path: Path, case: TestCase) -> None:
    command = [
        sys.executable,
        "-m",
        "fuzzing.triage.program_text",
        "--corpus",
        str(tmp_path),
        case.id,
        case.id,
    ]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    events = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [(event["id"], event["program"]) for event in events] == [(case.id, GOLDEN)] * 2
    assert all("onnx.parser.parse_model" in event["code"] for event in events)


def test_a_missing_case_is_the_callers_mistake(
    tmp_path: Path, case: TestCase, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--corpus", str(tmp_path), case.id, "0" * 64]) == 2
    out, err = capsys.readouterr()
    assert json.loads(out)["id"] == case.id  # what could be described was
    assert "cannot read case.json" in err
    assert main(["--corpus", str(tmp_path), "../etc"]) == 2


def test_what_may_be_behind_a_failure_is_told_on_demand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = OnnxModel(model(operator="Abs"))
    case = TestCase(program, (), Provenance("tests", "t", "Abs", "onnx", "1"))
    Corpus(tmp_path).add(case)
    assert main(["--corpus", str(tmp_path), "--traits", case.id]) == 0
    reported = json.loads(capsys.readouterr().out)
    assert reported["traits"].keys() == {field.name for field in dataclasses.fields(Traits)}
    assert "Abs" in reported["traits"]["operators"]
