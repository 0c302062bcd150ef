"""Nodes of ONNX models as models of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from fuzzing.cases import Recipe, Tensor
from fuzzing.migrate import onnx_single_nodes
from fuzzing.migrate.onnx_single_nodes import SingleNodeModel, UnsupportedModelError

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def info(name: str, kind: int = FLOAT, shape: Any = (2, 3)) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes: list[Any], inputs: list[Any], outputs: list[str], **more: Any) -> onnx.ModelProto:
    opset = more.pop("opset", 21)
    functions = more.pop("functions", [])
    graph = helper.make_graph(
        nodes, "graph", inputs, [onnx.ValueInfoProto(name=name) for name in outputs], **more
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], functions=functions)


def singles(made: onnx.ModelProto) -> list[SingleNodeModel]:
    known = onnx_single_nodes.infer_shapes(made)
    return [
        onnx_single_nodes.extract_node(node, scope, known)
        for node, scope in onnx_single_nodes.walk_nodes(known)
    ]


def array(*shape: int) -> np.ndarray[Any, Any]:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def constant(name: str, value: Any) -> TensorProto:
    return numpy_helper.from_array(np.asarray(value), name)


TWO = model(
    [
        helper.make_node("MatMul", ["a", "w"], ["h"], name="first"),
        helper.make_node("Relu", ["h"], ["y"], doc_string="second"),
    ],
    [info("a")],
    ["y"],
    initializer=[constant("w", array(3, 4))],
)


def test_each_node_becomes_a_model_of_its_own() -> None:
    matmul, relu = singles(TWO)
    assert (matmul.operator, relu.operator) == ("MatMul", "Relu")
    assert [[node.op_type for node in one.model.graph.node] for one in (matmul, relu)] == [
        ["MatMul"],
        ["Relu"],
    ]
    assert [name for name, _ in matmul.inputs] == ["x0"]
    assert [name for name, _ in relu.inputs] == ["x0"]
    assert relu.inputs[0][1] == Recipe("uniform", "float32", (2, 4), -1.0, 1.0, 0)  # inferred


def test_constants_stay_constants() -> None:
    matmul = singles(TWO)[0]
    [kept] = matmul.model.graph.initializer
    np.testing.assert_array_equal(numpy_helper.to_array(kept), array(3, 4))
    shape = helper.make_node("Constant", [], ["s"], value=constant("", np.array([3, 2])))
    [reshape] = singles(model([shape, helper.make_node("Reshape", ["a", "s"], ["y"])], [info("a")], ["y"]))
    assert [item.name for item in reshape.model.graph.initializer] == ["x1"]
    assert reshape.model.graph.output[0].type.tensor_type.shape.dim[0].dim_value == 3


@pytest.mark.parametrize(
    ("attribute", "wanted"), [("value_int", 1), ("value_ints", [1]), ("value_floats", [0.5])]
)
def test_a_constant_may_be_given_as_a_plain_attribute(attribute: str, wanted: Any) -> None:
    held = helper.make_node("Constant", [], ["c"], **{attribute: wanted})
    cast = helper.make_node("Cast", ["c"], ["y"], to=FLOAT)
    [one] = singles(model([held, cast], [], ["y"]))
    assert one.inputs == ()
    np.testing.assert_array_equal(numpy_helper.to_array(one.model.graph.initializer[0]), wanted)


def test_a_large_constant_becomes_an_input() -> None:
    large = constant("w", np.zeros((3, 1 << 14), np.float32))
    [one] = singles(
        model([helper.make_node("MatMul", ["a", "w"], ["y"])], [info("a")], ["y"], initializer=[large])
    )
    assert [name for name, _ in one.inputs] == ["x0", "x1"]
    assert one.model.graph.initializer == []


def test_every_model_runs_on_the_inputs_drawn_for_it() -> None:
    for one in singles(TWO):
        feeds = {name: value.draw().array() for name, value in one.inputs if isinstance(value, Recipe)}
        found: Any = ReferenceEvaluator(one.model).run(None, feeds)
        assert [output.shape for output in found] == [(2, 4)]


@given(st.lists(st.text("abcxy01_", min_size=1, max_size=8), min_size=4, max_size=4, unique=True))
def test_names_do_not_matter(names: list[str]) -> None:
    a, b, y, node = names

    def one(*given: str) -> bytes:
        left, right, out, name = given
        add = helper.make_node("Add", [left, right], [out], name=name, doc_string=name)
        [made] = singles(model([add], [info(left), info(right)], [out]))
        return made.program.model

    assert one(a, b, y, node) == one("a", "b", "y", "")


def test_the_opset_is_the_models() -> None:
    old, new = (
        singles(model([helper.make_node("Relu", ["a"], ["y"])], [info("a")], ["y"], opset=opset))[0]
        for opset in (13, 14)
    )
    assert [item.version for item in old.model.opset_import] == [13]
    assert old.program != new.program


def test_a_subgraph_keeps_what_it_reads_from_outside() -> None:
    branch = helper.make_graph(
        [helper.make_node("Mul", ["h", "w"], ["then"])], "then", [], [info("then", FLOAT, None)]
    )
    other = helper.make_graph(
        [helper.make_node("Neg", ["h"], ["else"])], "else", [], [info("else", FLOAT, None)]
    )
    made = model(
        [
            helper.make_node("Abs", ["a"], ["h"]),
            helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=other),
        ],
        [info("a"), info("c", TensorProto.BOOL, ())],
        ["y"],
        initializer=[constant("w", array(2, 3))],
    )
    found = singles(made)
    assert [one.operator for one in found] == ["Abs", "If", "Neg", "Mul"]  # attributes by name
    choice = found[1]
    assert sorted(name for name, _ in choice.inputs) == ["c", "h"]
    assert [item.name for item in choice.model.graph.initializer] == ["w"]


def test_unknown_dimensions_get_a_size() -> None:
    [one] = singles(
        model([helper.make_node("Relu", ["a"], ["y"])], [info("a", FLOAT, ["batch", 3, None])], ["y"])
    )
    [(_, value)] = one.inputs
    assert value == Recipe("uniform", "float32", (2, 3, 2), -1.0, 1.0, 0)


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        (TensorProto.BFLOAT16, "bfloat16"),
        (TensorProto.INT4, "int4"),
        (TensorProto.STRING, "string"),
        (TensorProto.BOOL, "bool"),
    ],
)
def test_types_that_no_recipe_draws_are_drawn_too(kind: int, dtype: str) -> None:
    [one] = singles(
        model([helper.make_node("Identity", ["a"], ["y"])], [info("a", kind, (2, 2))], ["y"], opset=25)
    )
    [(_, value)] = one.inputs
    drawn = value.draw() if isinstance(value, Recipe) else value
    assert isinstance(drawn, Tensor)
    assert (drawn.dtype, drawn.shape) == (dtype, (2, 2))


def _local() -> onnx.FunctionProto:
    body = [helper.make_node("Relu", ["x"], ["y"])]
    return helper.make_function("own", "Mine", ["x"], ["y"], body, [helper.make_opsetid("", 21)])


WRONG: dict[str, tuple[onnx.ModelProto, str]] = {
    "left out by OPERA": (
        model(
            [helper.make_node("Binarizer", ["a"], ["y"], domain="ai.onnx.ml")],
            [info("a", FLOAT, (2,))],
            ["y"],
        ),
        "OPERA leaves this operator out",
    ),
    "a function of the model": (
        model(
            [helper.make_node("Mine", ["a"], ["y"], domain="own")], [info("a")], ["y"], functions=[_local()]
        ),
        "the operator is not one of the standard's",
    ),
    "an operator of others": (
        model([helper.make_node("FusedConv", ["a"], ["y"], domain="com.example")], [info("a")], ["y"]),
        "the operator is not one of the standard's",
    ),
    "of undefined type": (
        model([helper.make_node("Relu", ["a"], ["y"])], [info("a", TensorProto.UNDEFINED)], ["y"]),
        "the type of an input is not known",
    ),
    "of unknown rank": (
        model([helper.make_node("Relu", ["a"], ["y"])], [info("a", FLOAT, None)], ["y"]),
        "the rank of an input is not known",
    ),
    "that takes a sequence": (
        model(
            [helper.make_node("SequenceLength", ["a"], ["y"])],
            [helper.make_tensor_sequence_value_info("a", FLOAT, (2,))],
            ["y"],
        ),
        "an input is no tensor",
    ),
    "whose shape is data": (
        model([helper.make_node("Reshape", ["a", "s"], ["y"])], [info("a"), info("s", INT64, (1,))], ["y"]),
        "an input decides the shape of an output, and its value is not known",
    ),
    "that is wrong": (
        model([helper.make_node("Relu", ["a"], ["y"], alpha=1.0)], [info("a")], ["y"]),
        "the node alone is not valid ONNX",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_becomes_no_model_has_a_reason(name: str) -> None:
    made, reason = WRONG[name]
    with pytest.raises(UnsupportedModelError) as caught:
        singles(made)
    assert str(caught.value) == reason
