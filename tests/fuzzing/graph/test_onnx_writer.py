from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import pytest
from hypothesis import given, settings

from fuzzing.errors import UnwritableError
from fuzzing.generate.generators import GeneratedGraph
from fuzzing.graph import Builder, Constant, Graph, Subgraph, TensorType
from fuzzing.graph.onnx_reader import from_onnx
from fuzzing.graph.onnx_types import proto_of
from fuzzing.graph.onnx_writer import to_bytes, to_onnx
from fuzzing.graph.types import UNKNOWN
from tests.support.graphs import BRANCHES, X, generated, model
from tests.support.reference_evaluation import all_same, in_onnxruntime

F = TensorType("float32", (2,))


def relu(names: dict[int, str] | None = None) -> Graph:
    builder = Builder(21)
    x = builder.placeholder(F)
    return replace(builder.finish(builder.node("Relu", (x,), (F,))), names=names or {})


def spread(graph: Graph) -> Graph:
    """An equal graph whose dictionaries are in another order."""
    nodes = tuple(
        [node._replace(attributes=dict(reversed([*node.attributes.items()]))) for node in graph.nodes]
    )
    return replace(graph, nodes=nodes, constants=dict(reversed([*graph.constants.items()])))


@settings(max_examples=25)
@given(generated())
def test_models_pass_the_checker_and_equal_graphs_are_equal_bytes(made: GeneratedGraph) -> None:
    graph = made.graph
    onnx.checker.check_model(to_onnx(graph), full_check=True)
    assert spread(graph) == graph
    assert to_bytes(spread(graph)) == to_bytes(graph)


@settings(max_examples=25)
@given(generated())
def test_names_of_edges_and_nodes_are_identifiers_and_none_is_twice(made: GeneratedGraph) -> None:
    proto = to_onnx(made.graph).graph
    edges = [item.name for item in (*proto.input, *proto.initializer)]
    edges += [name for node in proto.node for name in node.output if name]
    nodes = [node.name for node in proto.node]
    assert all(name.isidentifier() for name in edges + nodes)
    assert len(set(edges)) == len(edges)
    assert len(set(nodes)) == len(nodes)


def test_the_oldest_format_that_may_hold_the_opset() -> None:
    assert to_onnx(replace(relu(), opset=21)).ir_version == 10
    assert to_onnx(replace(relu(), opset=17)).ir_version == 8
    # Opset 6 is of IR 3, in which an initializer had to be an input too.
    assert to_onnx(replace(relu(), opset=6)).ir_version == 4


def test_names_that_edges_have_go_before_made_up_ones() -> None:
    proto = to_onnx(relu({1: "v0"})).graph
    assert [proto.input[0].name, proto.output[0].name] == ["v0_", "v0"]


def test_a_name_given_twice_is_told_apart() -> None:
    proto = to_onnx(relu({0: "x", 1: "x"})).graph
    assert [proto.input[0].name, proto.output[0].name] == ["x", "x_"]


def test_a_body_does_not_hide_what_is_called_alike_around_it() -> None:
    graph = from_onnx(model(BRANCHES))
    branch = graph.nodes[1].attributes["else_branch"]
    assert isinstance(branch, Subgraph)
    alike = Subgraph(replace(branch.graph, names={branch.graph.outputs[0]: "x"}), branch.captures)
    node = graph.nodes[1]._replace(attributes={**graph.nodes[1].attributes, "else_branch": alike})
    made = to_onnx(replace(graph, nodes=(graph.nodes[0], node)))
    onnx.checker.check_model(made, full_check=True)
    given_ = {"x": X, "c": np.array(False)}
    assert all_same(in_onnxruntime(made, given_), in_onnxruntime(model(BRANCHES), given_))


def test_operators_of_odd_names_give_nodes_of_plain_ones() -> None:
    builder = Builder(21)
    x = builder.placeholder(F)
    graph = builder.finish(builder.node("Odd.Name-1", (x,), (F,), domain="mine"))
    made = to_onnx(replace(graph, opsets={"mine": 1}))
    assert made.graph.node[0].name == "vn0_Odd_Name_1"
    assert [(item.domain, item.version) for item in made.opset_import] == [("", 21), ("mine", 1)]


def test_attributes_without_elements_have_the_type_that_the_schema_tells() -> None:
    builder = Builder(21)
    x = builder.placeholder(F)
    (a,) = builder.node("Transpose", (x,), (F,), {"perm": ()})
    (b,) = builder.node("StringNormalizer", (a,), (F,), {"stopwords": ()})
    (c,) = builder.node("Constant", (), (TensorType("float32", (0,)),), {"value_floats": ()})
    (d,) = builder.node("Theirs", (b,), (F,), {"those": ()}, "mine")
    made = to_onnx(replace(builder.finish((c, d)), opsets={"mine": 1}))
    kinds = [node.attribute[0].type for node in made.graph.node]
    of = onnx.AttributeProto
    assert kinds == [of.INTS, of.STRINGS, of.FLOATS, of.INTS]
    assert [node.attributes for node in from_onnx(made).nodes] == [node.attributes for node in builder.nodes]


def test_what_is_no_attribute_is_our_mistake() -> None:
    builder = Builder(21)
    x = builder.placeholder(F)
    graph = builder.finish(builder.node("Relu", (x,), (F,), {"odd": [1]}))  # type: ignore[dict-item]
    with pytest.raises(TypeError, match=r"cannot be \[1\]"):
        to_onnx(graph)


def test_an_output_of_unknown_type_cannot_be_told() -> None:
    graph = relu()
    with pytest.raises(UnwritableError, match="v1, an input or output"):
        to_onnx(replace(graph, types=(F, UNKNOWN)))


def test_a_type_that_is_none_of_onnx_is_refused() -> None:
    with pytest.raises(UnwritableError, match=r"no type 'heap\(float\)'"):
        proto_of(TensorType("heap(float)", None))


def test_constants_travel_by_their_bits() -> None:
    values = np.array([0.0, -0.0, np.nan, np.inf, 1e-45], np.float32)
    builder = Builder(21)
    edge = builder.constant(Constant("float32", values))
    graph = builder.finish(builder.node("Identity", (edge,), (TensorType("float32", (5,)),)))
    assert from_onnx(to_onnx(graph)).constants[0].array.tobytes() == values.tobytes()
