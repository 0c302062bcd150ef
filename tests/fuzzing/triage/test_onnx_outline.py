"""The parts of ONNX models that tests are written with."""

from __future__ import annotations

import onnx.parser
import pytest

from fuzzing.triage.onnx_outline import onnx_outline


@pytest.mark.parametrize(
    ("graph", "names"),
    [
        (
            "(float[4] x) => (float[2] y) <int64[1] a = {0}, int64[1] b = {2}> { y = Slice(x, a, b) }",
            ["starts", "ends"],
        ),
        ("(float[4] k) => (float[2] y, int64[2] i) <int64[1] a = {2}> { y, i = TopK(k, a) }", ["v0"]),
        ("(float[2] x) => (float[4] y) <float[2] a = {1, 2}> { y = Concat<axis=0>(x, a) }", ["v0"]),
        (
            "(float[2] x) => (float[2] y) <float[2] a = {1, 2}> { z = Add(x, a) y = Mul(z, a) }",
            ["v0"],
        ),
        ("(float[2] x) => (float[2] y) <float[2] a = {1, 2}> { y = other.Op(x, a) }", ["v0"]),
        (
            "(bool c, float[2] x) => (float[2] y) <float[2] a = {1, 2}>"
            "{ z = Add(x, a) y = If(c) <then_branch = t () => (float[2] p) {p = Neg(z)},"
            " else_branch = e () => (float[2] q) {q = Abs(z)}> }",
            [],
        ),
    ],
)
def test_constants_have_the_names_of_the_inputs_that_they_are(graph: str, names: list[str]) -> None:
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 18, "other" : 1]> g {graph}')
    outline = onnx_outline(model.SerializeToString())
    assert [one["name"] for one in outline.get("initializers", ())] == names
    for one in outline.get("initializers", ()):
        assert any(one["name"] in node["inputs"] for node in outline["operators"])
