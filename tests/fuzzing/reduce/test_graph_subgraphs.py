"""Bodies of If and Loop made smaller, on a real compiler behind a fault that looks into them."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

from fuzzing.cases import OnnxModel, Provenance, Tensor, TestCase
from fuzzing.execute.shard import Shard
from fuzzing.reduce.reduction import reduce_case

BACKEND = str(Path(__file__).parent / "deep_backend.py")
pytestmark = pytest.mark.compiler_onnxruntime

LOOP = """g (float[3] x, int64 n) => (float[3] y) {
    a = Abs(x)
    go = Constant<value = bool {1}>()
    b = Loop(n, go, a)<body = round (int64 i, bool on, float[3] s) => (bool again, float[3] t) {
        again = Identity(on)  p = Neg(s)  q = Elu(p)  t = Relu(q)
    }>
    y = Sqrt(b)
}"""
BRANCH = """g (float[3] x, bool c) => (float[3] y) {
    a = Abs(x)
    b = If(c)<
        then_branch = yes () => (float[3] t) { p = Neg(a)  q = Elu(p)  t = Relu(q) },
        else_branch = no () => (float[3] e) { e = Exp(a) }
    >
    y = Sqrt(b)
}"""


def reduced(graph: str, other: np.ndarray) -> onnx.ModelProto:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> {graph}')
    names = [item.name for item in model.graph.input]
    arrays = (np.linspace(0.5, 2, 3, dtype=np.float32), other)
    given = tuple((name, Tensor.of(array)) for name, array in zip(names, arrays, strict=True))
    case = TestCase(OnnxModel(model.SerializeToString()), given, Provenance("tests", "", "", "", ""))
    reduction = reduce_case(case, Shard("", (), BACKEND, "digest", sys.executable))
    assert reduction.confirmed
    assert reduction.reduced.minimal
    small = onnx.load_from_string(reduction.case.program.to_bytes())
    onnx.checker.check_model(small, full_check=True)
    return small


def test_a_branch_takes_the_place_of_its_if() -> None:
    [node] = reduced(BRANCH, np.array(True)).graph.node
    assert node.op_type == "Elu"


def test_of_a_loops_body_one_operator_is_left() -> None:
    [loop] = reduced(LOOP, np.array(2)).graph.node
    assert loop.op_type == "Loop"
    [body] = [attribute.g for attribute in loop.attribute]
    assert [inner.op_type for inner in body.node] == ["Elu"]
