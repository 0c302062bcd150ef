"""Node tests where other nodes surround the node: what the models compute stays the same."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx.backend.test.case.test_case import TestCase as NodeTest
from onnx.reference import ReferenceEvaluator

from fuzzing.migrate.onnx_contexts import compute_sizes, in_branch, plain_tests

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def node_test(text: str, *inputs: Any) -> NodeTest:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> g {text}')
    names = [one.name for one in model.graph.input]
    outputs: Any = ReferenceEvaluator(model).run(None, dict(zip(names, inputs, strict=True)))
    return NodeTest(
        name="test_it", model_name="it", url=None, model_dir=None, model=model,
        data_sets=[(list(inputs), list(outputs))], kind="node", rtol=1e-3, atol=1e-7,
    )  # fmt: skip


SLICE = node_test(
    "(float[3,4] x, int64[2] starts, int64[2] ends) => (float[2,3] y) { y = Slice(x, starts, ends) }",
    X,
    np.array([1, 0], np.int64),
    np.array([3, -1], np.int64),
)
FILL = node_test(
    "(int64[2] shape) => (float[2,3] y) { y = ConstantOfShape(shape) }", np.array([2, 3], np.int64)
)


def run(test: NodeTest | None) -> tuple[onnx.GraphProto, list[Any], list[Any]]:
    """The graph, what the reference computes, and what the test expects."""
    assert test is not None
    assert test.model is not None
    assert test.data_sets is not None
    onnx.checker.check_model(test.model, full_check=True)
    [(inputs, outputs)] = test.data_sets
    named = dict(zip((one.name for one in test.model.graph.input), inputs, strict=True))
    return test.model.graph, list(ReferenceEvaluator(test.model).run(None, named)), list(outputs)


def test_a_node_runs_in_both_branches_after_another_node() -> None:
    graph, found, expected = run(in_branch(SLICE))
    np.testing.assert_array_equal(found, expected)
    [choice] = graph.node
    bodies = [attribute.g for attribute in choice.attribute]
    assert [[node.op_type for node in body.node] for body in bodies] == [["Neg", "Neg", "Slice"]] * 2
    assert {one.name for one in graph.initializer} == {"starts", "ends"}
    assert [one.name for one in graph.input] == ["x", "assay_condition"]


def test_what_cannot_be_negated_is_in_no_branch() -> None:
    test = node_test("(bool[2] x) => (bool[2] y) { y = Not(x) }", np.array([True, False]))
    assert in_branch(test) is None


@pytest.mark.parametrize("last", ["Add", "Sub", "Mul", "Div"])
@pytest.mark.parametrize("test", [SLICE, FILL], ids=["Slice", "ConstantOfShape"])
def test_sizes_are_computed_from_a_shape(test: NodeTest, last: str) -> None:
    graph, found, expected = run(compute_sizes(test, last))
    np.testing.assert_array_equal(found, expected)
    kinds = Counter(node.op_type for node in graph.node)
    assert kinds["Shape"] == kinds["Gather"] == kinds["Concat"] > 0
    assert kinds[last] >= kinds["Shape"]
    assert "assay_shaped" in {one.name for one in graph.input}


def test_a_scalar_size_is_no_list() -> None:
    test = node_test(
        "(float[3,4] x, int64 depth) => (float[3,4] y) { y = CumSum(x, depth) }", X, np.array(1, np.int64)
    )
    graph, found, expected = run(compute_sizes(test, "Div"))
    np.testing.assert_array_equal(found, expected)
    assert "Concat" not in {node.op_type for node in graph.node}


def test_data_is_not_computed() -> None:
    large = node_test("(int64[5] x) => (int64[5] y) { y = Neg(x) }", np.arange(5, dtype=np.int64))
    assert compute_sizes(large, "Add") is None
    assert compute_sizes(node_test("(float[3,4] x) => (float[3,4] y) { y = Abs(x) }", X), "Add") is None


def test_tests_of_old_opsets_are_plain_where_their_operator_is_the_same_since() -> None:
    found: dict[str, list[NodeTest]] = {}
    for operator, test in plain_tests():
        found.setdefault(operator, []).append(test)
    assert {"ConvInteger", "MatMulInteger", "NonMaxSuppression", "QLinearConv", "Shrink"} <= found.keys()
    assert not {"Scan", "Upsample"} & found.keys(), "they are others since, or have subgraphs"
    for test in found["QLinearConv"]:
        graph, computed, expected = run(test)
        assert test.model is not None
        assert test.model.opset_import[0].version == 13
        assert [node.op_type for node in graph.node] == ["QLinearConv"]
        np.testing.assert_array_equal(computed, expected)
