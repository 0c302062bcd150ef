from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from fuzzing.draws import Draws
from fuzzing.generate.isra.solver import Generated
from fuzzing.graph import Body, Builder, Constant, TensorType
from fuzzing.graph.completion import specification
from fuzzing.graph.domains import Choice
from fuzzing.graph.intervals import Interval
from fuzzing.graph.ir import Node
from fuzzing.graph.operator import LEAD, Auxiliary, Operator, Setting
from fuzzing.graph.site import Limits, Site, int64
from fuzzing.graph.types import ABSENT
from tests.support.graphs import generated

X = TensorType("float32", (2, 3))
SOME = Operator(
    "Some",
    13,
    slots=(LEAD, Auxiliary(lambda site: int64(1, 2)), LEAD),
    degrees=(3,),
    settings=(Setting("axis", Choice(1), default=-1), Setting("mode", Choice("a"), omit=0.5, default="a")),
)


def placed(**attributes: int) -> Site:
    """The place of a node that is there: an input, a constant, one left out."""
    builder = Builder(21)
    x = builder.placeholder(X)
    axes = builder.constant(int64(1, 2))
    builder.node("Some", (x, axes, None), (X, X), attributes)
    graph = builder.finish(())
    return Site.of(SOME, graph, graph.nodes[0])


def test_a_place_knows_what_a_node_is_given() -> None:
    site = placed()
    assert (site.x, site.dtype, site.shape, site.rank) == (X, "float32", (2, 3), 2)
    assert (site.degree, site.outputs, site.edges) == (3, 2, [0, 1, None])
    assert [site.given(position) for position in range(4)] == [True, True, False, False]
    assert site.dims(0) == (2, 3)
    assert site.numbers(1) == [1, 2]
    assert site.type(1) == TensorType("int64", (2,))


def test_attributes_that_are_left_out_are_their_defaults() -> None:
    assert (placed().get("axis"), placed().axis(), placed().get("mode")) == (-1, 1, "a")
    assert (placed(axis=0).get("axis"), placed(axis=-2).axis()) == (0, 0)
    assert placed().get("unheard of") is None


def test_what_is_not_there_cannot_be_asked_for() -> None:
    site = placed()
    with pytest.raises(LookupError, match="Some has no input 2"):
        site.type(2)
    with pytest.raises(LookupError, match="input 0 is no constant"):
        site.numbers(0)
    with pytest.raises(LookupError, match="nothing is known of the values of Some's input 0"):
        site.range(0)


def test_ranges_are_known_while_solving() -> None:
    site = Site(SOME, 21, Limits(), Draws(0), 1)
    site.ranges[0] = Interval(0, 1)
    assert site.range(0) == Interval(0, 1)


def test_edges_that_bodies_capture_stand_before_the_inputs() -> None:
    inner = Builder(21)
    outside = inner.capture(X)
    body = Body(inner.finish((outside,)), (4,))
    operator = Operator("Held", 13, slots=(LEAD, LEAD), captured=1)
    builder = Builder(21)
    for _ in range(5):
        builder.placeholder(X)
    condition = builder.constant(Constant("bool", np.array(True)))
    node = Node("Held", (condition,), (6,), {"body": body})
    site = Site.of(operator, builder.finish(()), node)
    assert site.edges == [4, condition]
    assert site.x == X


@settings(max_examples=40)
@given(generated())
def test_specifications_say_of_a_graph_that_is_there_what_they_said_when_it_was_made(made: Generated) -> None:
    graph = made.graph
    asked = 0
    for node in graph.nodes:
        operator = specification(graph, node)
        if operator is None:
            continue
        found = operator.infer(Site.of(operator, graph, node))
        for type_, edge in zip(found, node.outputs, strict=True):
            assert graph.types[edge] in (type_, ABSENT), node
        asked += 1
    assert asked
