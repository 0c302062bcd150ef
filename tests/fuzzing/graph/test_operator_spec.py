from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from fuzzing.generate.generators import GeneratedGraph
from fuzzing.graph import Builder, Constant, Subgraph, TensorType
from fuzzing.graph.attribute_domains import Choice
from fuzzing.graph.intervals import Interval
from fuzzing.graph.ir import Node
from fuzzing.graph.operator_spec import (
    PRIMARY_INPUT,
    AttributeSpec,
    ConstantInput,
    GraphLimits,
    NodeContext,
    OperatorSpec,
    int64,
)
from fuzzing.graph.type_inference import find_specification
from fuzzing.graph.types import ABSENT
from fuzzing.rng import Rng
from tests.support.graphs import generated

X = TensorType("float32", (2, 3))
SOME = OperatorSpec(
    "Some",
    13,
    input_specs=(PRIMARY_INPUT, ConstantInput(lambda context: int64(1, 2)), PRIMARY_INPUT),
    degrees=(3,),
    attribute_specs=(
        AttributeSpec("axis", Choice(1), default=-1),
        AttributeSpec("mode", Choice("a"), omit=0.5, default="a"),
    ),
)


def placed(**attributes: int) -> NodeContext:
    """The place of a node that is there: an input, a constant, one left out."""
    builder = Builder(21)
    x = builder.placeholder(X)
    axes = builder.constant(int64(1, 2))
    builder.node("Some", (x, axes, None), (X, X), attributes)
    graph = builder.finish(())
    return NodeContext.from_node(SOME, graph, graph.nodes[0])


def test_a_place_knows_what_a_node_is_given() -> None:
    context = placed()
    assert (context.x, context.dtype, context.shape, context.rank) == (X, "float32", (2, 3), 2)
    assert (context.degree, context.outputs, context.edges) == (3, 2, [0, 1, None])
    assert [context.given(position) for position in range(4)] == [True, True, False, False]
    assert context.dims(0) == (2, 3)
    assert context.numbers(1) == [1, 2]
    assert context.type(1) == TensorType("int64", (2,))


def test_attributes_that_are_left_out_are_their_defaults() -> None:
    assert (placed().get("axis"), placed().axis(), placed().get("mode")) == (-1, 1, "a")
    assert (placed(axis=0).get("axis"), placed(axis=-2).axis()) == (0, 0)
    assert placed().get("unheard of") is None


def test_what_is_not_there_cannot_be_asked_for() -> None:
    context = placed()
    with pytest.raises(LookupError, match="Some has no input 2"):
        context.type(2)
    with pytest.raises(LookupError, match="input 0 is no constant"):
        context.numbers(0)
    with pytest.raises(LookupError, match="nothing is known of the values of Some's input 0"):
        context.range(0)


def test_ranges_are_known_while_solving() -> None:
    context = NodeContext(SOME, 21, GraphLimits(), Rng(0), 1)
    context.ranges[0] = Interval(0, 1)
    assert context.range(0) == Interval(0, 1)


def test_edges_that_bodies_capture_stand_before_the_inputs() -> None:
    inner = Builder(21)
    outside = inner.capture(X)
    body = Subgraph(inner.finish((outside,)), (4,))
    operator = OperatorSpec("Held", 13, input_specs=(PRIMARY_INPUT, PRIMARY_INPUT), captured=1)
    builder = Builder(21)
    for _ in range(5):
        builder.placeholder(X)
    condition = builder.constant(Constant("bool", np.array(True)))
    node = Node("Held", (condition,), (6,), {"body": body})
    context = NodeContext.from_node(operator, builder.finish(()), node)
    assert context.edges == [4, condition]
    assert context.x == X


@settings(max_examples=40)
@given(generated())
def test_specifications_say_of_a_graph_that_is_there_what_they_said_when_it_was_made(
    made: GeneratedGraph,
) -> None:
    graph = made.graph
    requested = 0
    for node in graph.nodes:
        operator = find_specification(graph, node)
        if operator is None:
            continue
        found = operator.infer(NodeContext.from_node(operator, graph, node))
        for type_, edge in zip(found, node.outputs, strict=True):
            assert graph.types[edge] in (type_, ABSENT), node
        requested += 1
    assert requested
