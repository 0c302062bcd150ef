from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fuzzing.errors import IllTypedError, UsageError
from fuzzing.generate.generators import GeneratedGraph
from fuzzing.graph import Builder, Constant, Graph, Subgraph, TensorType
from fuzzing.graph.onnx_reader import from_onnx
from fuzzing.graph.onnx_writer import to_onnx
from fuzzing.graph.transformations import extract, prune, retype, substitute
from fuzzing.graph.types import ABSENT, UNKNOWN
from tests.support.graph_validation import validate
from tests.support.graphs import BRANCHES, LOOP, feeds, generated, model, runnable, seeds
from tests.support.reference_evaluation import in_onnxruntime, same, where_implemented

F = TensorType("float32", (2,))


def given_edges(graph: Graph) -> list[int]:
    """The edges that nodes give."""
    return [edge for node in graph.nodes for edge in node.outputs if graph.types[edge] != ABSENT]


def ran(graph: Graph, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """What each output of a graph is, by its name; skips what onnxruntime lacks."""
    proto = to_onnx(graph)
    wanted = {item.name for item in proto.graph.input}
    found = where_implemented(proto, {name: array for name, array in arrays.items() if name in wanted})
    assume(found is not None)
    return dict(zip([item.name for item in proto.graph.output], found or [], strict=True))


# prune --------------------------------------------------------------------------------------------------


@settings(max_examples=20)
@given(seeds(), st.data())
def test_pruning_changes_no_output_that_stays(seed: int, data: st.DataObject) -> None:
    made = runnable().generate(seed)
    edges = given_edges(made.graph)
    kept = data.draw(st.lists(st.sampled_from(edges), min_size=1, max_size=3, unique=True))
    arrays = {f"v{edge}": array for edge, array in feeds(made, seed).items()}
    whole = ran(replace(made.graph, outputs=tuple(kept)), arrays)
    small = prune(made.graph, kept)
    validate(small)
    found = ran(small, arrays)
    assert found.keys() == whole.keys()
    assert all(same(found[name], whole[name]) for name in whole)


@settings(max_examples=30)
@given(generated())
def test_pruned_graphs_hold_nothing_that_is_not_needed(made: GeneratedGraph) -> None:
    small = prune(made.graph, made.graph.outputs[:1])
    used = {edge for node in small.nodes for edge in node.used_edges()}.union(small.outputs)
    assert set(small.inputs).union(small.constants) <= used
    assert all(not used.isdisjoint(node.outputs) for node in small.nodes)
    assert prune(small, small.outputs) == small


# extract ------------------------------------------------------------------------------------------------


@settings(max_examples=20)
@given(seeds(), st.data())
def test_an_extract_is_valid_and_computes_the_same_inside(seed: int, data: st.DataObject) -> None:
    made = runnable().generate(seed)
    graph = made.graph
    places = data.draw(st.sets(st.sampled_from(range(len(graph.nodes))), min_size=1))
    part = extract(graph, places)
    validate(part)
    assert len(part.nodes) == len(places)
    proto = to_onnx(part)
    onnx.checker.check_model(proto, full_check=True)
    arrays = {f"v{edge}": array for edge, array in feeds(made, seed).items()}
    everything = ran(replace(graph, outputs=tuple(given_edges(graph))), arrays)
    found = ran(part, {**everything, **arrays})
    assert found
    assert all(same(found[name], everything[name]) for name in found)


def test_an_extract_of_everything_is_the_graph_itself() -> None:
    graph = from_onnx(model(BRANCHES))
    assert extract(graph, range(len(graph.nodes))) == graph


def test_an_extract_gives_what_others_use_and_what_nobody_uses() -> None:
    builder = Builder(21)
    x = builder.placeholder(F)
    (a,) = builder.node("Relu", (x,), (F,))
    (b,) = builder.node("Abs", (a,), (F,))
    (c,) = builder.node("Neg", (a,), (F,))
    builder.node("Exp", (b,), (F,))
    part = extract(builder.finish((c,)), [0, 1])
    assert [node.op for node in part.nodes] == ["Relu", "Abs"]
    assert [part.names.get(edge, f"v{edge}") for edge in part.outputs] == [f"v{a}", f"v{b}"]


def test_an_extract_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="no nodes"):
        extract(from_onnx(model(BRANCHES)), [])


# substitute ---------------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(generated())
def test_an_edge_for_itself_changes_nothing(made: GeneratedGraph) -> None:
    graph = made.graph
    assert substitute(graph, {edge: edge for edge in range(len(graph.types))}) == graph


def chain() -> Graph:
    """0 → Relu → 1 → Abs → 2 → Neg → 3, and 1 → Exp → 4; outputs 3 and 4."""
    builder = Builder(21)
    x = builder.placeholder(F)
    (a,) = builder.node("Relu", (x,), (F,))
    (b,) = builder.node("Abs", (a,), (F,))
    (c,) = builder.node("Neg", (b,), (F,))
    (d,) = builder.node("Exp", (a,), (F,))
    return builder.finish((c, d))


def test_a_node_is_bypassed_by_its_input_for_its_output() -> None:
    graph = substitute(chain(), {2: 1})
    validate(graph)
    assert [node.inputs for node in graph.nodes] == [(0,), (1,), (1,), (1,)]
    assert [node.op for node in prune(graph, graph.outputs).nodes] == ["Relu", "Neg", "Exp"]


def test_all_edges_are_replaced_at_once() -> None:
    graph = substitute(chain(), {1: 0, 2: 1})
    assert [node.inputs for node in graph.nodes] == [(0,), (0,), (1,), (0,)]


def test_outputs_are_replaced_too_and_may_be_one() -> None:
    graph = substitute(chain(), {3: 4})
    validate(graph)
    assert graph.outputs == (4, 4)
    onnx.checker.check_model(to_onnx(graph), full_check=True)


def test_nodes_are_put_in_order_where_an_edge_came_later() -> None:
    graph = substitute(chain(), {2: 4})
    validate(graph)
    assert [node.op for node in graph.nodes] == ["Relu", "Abs", "Exp", "Neg"]
    x = np.array([1.0, -2.0], np.float32)
    negated, exponential = in_onnxruntime(to_onnx(graph), {"v0": x})
    assert same(negated, -exponential)


def test_an_edge_cannot_come_to_depend_on_itself() -> None:
    with pytest.raises(UsageError, match=r"the outputs of node 0 \(Relu\) would depend on themselves"):
        substitute(chain(), {0: 3})


def test_what_bodies_capture_is_replaced_too() -> None:
    graph = from_onnx(model(BRANCHES))
    x, y = graph.inputs[0], graph.nodes[0].outputs[0]
    changed = substitute(graph, {y: x})
    validate(changed)
    found = in_onnxruntime(to_onnx(changed), {"x": np.array([1, -2], np.float32), "c": np.array(True)})
    assert same(found[1], np.array([2, 8], np.float32))  # (x + x) · x


# retype -------------------------------------------------------------------------------------------------


def forgotten(graph: Graph) -> Graph:
    """The graph with the types of inputs and initializers alone."""
    known = {*graph.inputs, *graph.constants}
    types = [
        type_ if edge in known or type_ == ABSENT else replaced(type_)
        for edge, type_ in enumerate(graph.types)
    ]
    return replace(graph, types=tuple(types))


def replaced(type_: TensorType) -> TensorType:
    return TensorType("int8", (7,) * type_.rank)


@settings(max_examples=30)
@given(generated(dtypes=("float32", "int32", "float16")))
def test_types_are_found_again(made: GeneratedGraph) -> None:
    graph = made.graph
    assert retype(graph, legal=True) == graph
    assert retype(forgotten(graph)).types == graph.types


@pytest.mark.parametrize("text", [BRANCHES, LOOP])
def test_types_are_found_again_in_bodies(text: str) -> None:
    graph = from_onnx(model(text))
    assert retype(graph) == graph
    assert retype(graph, legal=True) == graph


def test_a_new_type_of_an_input_goes_through_the_graph_and_its_bodies() -> None:
    graph = from_onnx(model(LOOP))
    wider = replace(graph, types=(TensorType("float32", (5,)), *graph.types[1:]))
    found = retype(wider)
    validate(found)
    assert [str(found.types[edge]) for edge in found.outputs] == ["float32[5]", "float32[3,5]"]
    body = found.nodes[0].attributes["body"]
    assert isinstance(body, Subgraph)
    assert str(body.graph.types[body.graph.captured[0]]) == "float32[5]"


def test_operators_that_do_not_take_their_inputs_are_told() -> None:
    builder = Builder(21)
    x, y = builder.placeholder(F), builder.placeholder(TensorType("float32", (3,)))
    graph = builder.finish(builder.node("Add", (x, y), (F,)))
    with pytest.raises(IllTypedError, match="ncompatible dimensions"):
        retype(graph)


def test_attributes_that_an_operator_lacks_are_told() -> None:
    builder = Builder(21)
    x = builder.placeholder(F)
    with pytest.raises(IllTypedError, match="Unrecognized attribute: odd"):
        retype(builder.finish(builder.node("Relu", (x,), (F,), {"odd": 1})))


def test_what_neither_specification_nor_onnx_can_tell_is_believed() -> None:
    builder = Builder(21)
    x = builder.placeholder(F)
    (y,) = builder.node("Theirs", (x,), (F,), domain="mine")
    (z,) = builder.node("Relu", (y,), (F,))
    graph = replace(builder.finish((z,)), opsets={"mine": 1})
    assert retype(graph) == graph
    unknown = replace(graph, types=(F, UNKNOWN, F))
    assert retype(unknown).types == (F, UNKNOWN, F)


def test_constants_keep_their_types() -> None:
    builder = Builder(21)
    x = builder.placeholder(TensorType("float32", (2, 3)))
    shape = builder.constant(Constant("int64", np.array([3, 2])))
    graph = builder.finish(builder.node("Reshape", (x, shape), (TensorType("float32", (1,)),)))
    for legal in (True, False):
        assert str(retype(graph, legal=legal).types[2]) == "float32[3,2]"


def test_what_would_crash_onnx_is_ill_typed() -> None:
    text = '<ir_version: 8, opset_import: ["" : 18]> g (float[4] x) => (float[2] y, float[2] z)'
    graph = from_onnx(onnx.parser.parse_model(f"{text} {{ y, z = Split <num_outputs = 2> (x) }}"))
    [node] = graph.nodes
    wrong = replace(graph, nodes=(node._replace(attributes={"num_outputs": 1}),))
    with pytest.raises(IllTypedError, match="has 2 outputs"):
        retype(wrong)
