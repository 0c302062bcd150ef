from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import onnx
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fuzzing.generate.generators import GeneratedGraph
from fuzzing.graph import Attribute, Builder, Constant, Graph, Node, Subgraph, TensorType
from fuzzing.graph.canonical_form import attribute_key, canonicalize, digest
from fuzzing.graph.onnx_reader import from_onnx
from fuzzing.graph.onnx_writer import to_onnx
from tests.support.graph_validation import validate
from tests.support.graphs import BRANCHES, LOOP, feeds, generated, model, runnable, seeds
from tests.support.reference_evaluation import all_same, in_onnxruntime, where_implemented

F = TensorType("float32", (2,))


def shuffled(graph: Graph, seed: int) -> Graph:
    """The same program with nodes and constants in another order, under other numbers and names."""
    draw = random.Random(seed)
    makers = graph.producers()
    waiting = list(graph.nodes)
    done: set[int] = set()
    order = [edge for edge in range(len(graph.types)) if edge not in makers]
    draw.shuffle(order)
    nodes: list[Node] = []
    while waiting:
        ready = [n for n in waiting if all(e not in makers or e in done for e in n.used_edges())]
        node = draw.choice(ready)
        waiting.remove(node)
        nodes.append(node)
        done.update(node.outputs)
        order += node.outputs
    numbers = {edge: number for number, edge in enumerate(order)}
    found = replace(graph, nodes=tuple(nodes)).renumber(numbers)
    return replace(found, names={edge: f"name{draw.random()}" for edge in range(len(order))})


def with_dead_nodes(graph: Graph, seed: int) -> Graph:
    """The same program with nodes that no output needs, and a second time what it computes."""
    draw = random.Random(seed)
    count = len(graph.types)
    types, nodes = list(graph.types), list(graph.nodes)
    for number in range(3):
        source = draw.randrange(count)
        nodes.append(Node("Identity", (source,), (count + number,), {}))
        types.append(graph.types[source])
    return replace(graph, types=tuple(types), nodes=tuple(nodes))


@settings(max_examples=40)
@given(generated(), st.integers(0, 1 << 32))
def test_names_order_and_dead_nodes_make_no_difference(made: GeneratedGraph, seed: int) -> None:
    graph = made.graph
    wanted = canonicalize(graph)
    validate(wanted)
    for other in (
        shuffled(graph, seed),
        with_dead_nodes(graph, seed),
        with_dead_nodes(shuffled(graph, seed), seed),
    ):
        validate(other)
        assert canonicalize(other) == wanted
        assert digest(other) == digest(graph)


@settings(max_examples=40)
@given(generated())
def test_the_canonical_form_is_its_own(made: GeneratedGraph) -> None:
    form = canonicalize(made.graph)
    assert canonicalize(form) == form
    assert form.names == {}
    assert len(form.inputs) == len(made.graph.inputs)


@settings(max_examples=15)
@given(seeds())
def test_the_canonical_form_computes_the_same(seed: int) -> None:
    made = runnable().generate(seed)
    graph, form = made.graph, canonicalize(made.graph)
    arrays = feeds(made, seed)
    before = {f"v{edge}": array for edge, array in arrays.items()}
    after = {f"v{new}": arrays[old] for old, new in zip(graph.inputs, form.inputs, strict=True)}
    wanted = where_implemented(to_onnx(graph), before)
    assume(wanted is not None)
    assert all_same(wanted or [], in_onnxruntime(to_onnx(form), after))


@given(generated(most=6), generated(most=6))
def test_different_programs_have_different_digests(one: GeneratedGraph, other: GeneratedGraph) -> None:
    same = canonicalize(one.graph) == canonicalize(other.graph)
    assert (digest(one.graph) == digest(other.graph)) == same


def unary(*steps: tuple[str, dict[str, Attribute]]) -> Graph:
    """A chain of operators of one input."""
    builder = Builder(21)
    edge = builder.placeholder(F)
    for op, attributes in steps:
        (edge,) = builder.node(op, (edge,), (F,), attributes)
    return builder.finish((edge,))


def test_equal_nodes_are_one() -> None:
    builder = Builder(21)
    x = builder.placeholder(F)
    (a,) = builder.node("Relu", (x,), (F,))
    (b,) = builder.node("Relu", (x,), (F,))
    (c,) = builder.node("Add", (a, b), (F,))
    form = canonicalize(builder.finish((c, b)))
    assert [(node.op, node.inputs) for node in form.nodes] == [("Relu", (0,)), ("Add", (1, 1))]
    assert form.outputs == (2, 1)


def test_equal_constants_are_one_and_those_nobody_needs_are_gone() -> None:
    builder = Builder(21)
    x = builder.placeholder(F)
    one, two, three = (builder.constant(Constant("float32", np.full(2, v, np.float32))) for v in (1, 1, 2))
    (a,) = builder.node("Add", (x, one), (F,))
    (b,) = builder.node("Add", (x, two), (F,))
    (c,) = builder.node("Mul", (a, b), (F,))
    form = canonicalize(builder.finish((c,)))
    assert len(form.constants) == 1
    assert [node.op for node in form.nodes] == ["Add", "Mul"]
    assert three not in form.constants


def test_inputs_stay_even_if_nothing_uses_them_and_their_defaults_are_not_merged() -> None:
    builder = Builder(21)
    x, y = builder.placeholder(F), builder.placeholder(F)
    (z,) = builder.node("Add", (x, x), (F,))
    graph = builder.finish((z,))
    default = Constant("float32", np.ones(2, np.float32))
    graph = replace(graph, constants={x: default, y: default})
    form = canonicalize(graph)
    assert form.inputs == (0, 1)
    assert form.constants == {0: default, 1: default}


def test_what_draws_random_numbers_is_not_merged() -> None:
    builder = Builder(21)
    x = builder.placeholder(F)
    (a,) = builder.node("RandomNormalLike", (x,), (F,))
    (b,) = builder.node("RandomNormalLike", (x,), (F,))
    (c,) = builder.node("Sub", (a, b), (F,))
    assert [node.op for node in canonicalize(builder.finish((c,))).nodes] == ["RandomNormalLike"] * 2 + [
        "Sub"
    ]


def test_the_order_of_operands_matters() -> None:
    def added(first: int, second: int) -> Graph:
        builder = Builder(21)
        builder.placeholder(F)
        builder.placeholder(F)
        return builder.finish(builder.node("Add", (first, second), (F,)))

    assert digest(added(0, 1)) != digest(added(1, 0))


def test_float_attributes_count_by_their_bits_in_single_precision() -> None:
    def leaky(alpha: float) -> str:
        return digest(unary(("LeakyRelu", {"alpha": alpha})))

    assert leaky(0.1) == leaky(float(np.float32(0.1)))
    assert leaky(0.0) != leaky(-0.0)
    assert leaky(float("nan")) == leaky(float("nan"))
    assert attribute_key(1) != attribute_key(1.0)
    assert attribute_key((1,)) != attribute_key(1)


@pytest.mark.parametrize("text", [BRANCHES, LOOP])
def test_bodies_have_a_canonical_form_too(text: str) -> None:
    graph = from_onnx(model(text))
    form = canonicalize(graph)
    validate(form)
    onnx.checker.check_model(to_onnx(form), full_check=True)
    assert canonicalize(form) == form
    assert canonicalize(from_onnx(to_onnx(form))) == form
    assert digest(from_onnx(to_onnx(graph))) == digest(graph)


def test_what_a_body_computes_makes_a_difference() -> None:
    graph = from_onnx(model(BRANCHES))
    other = from_onnx(model(BRANCHES.replace("Neg(x)", "Abs(x)")))
    assert digest(graph) != digest(other)


def test_a_body_that_captures_an_edge_twice_captures_it_once() -> None:
    inner = Builder(21)
    one, two, unused = inner.capture(F), inner.capture(F), inner.capture(F)
    body = inner.finish(inner.node("Add", (one, two), (F,)))
    builder = Builder(21)
    condition, x = builder.placeholder(TensorType("bool", ())), builder.placeholder(F)
    bodies = {name: Subgraph(body, (x, x, x)) for name in ("then_branch", "else_branch")}
    form = canonicalize(builder.finish(builder.node("If", (condition,), (F,), bodies)))
    found = form.nodes[0].attributes["then_branch"]
    assert isinstance(found, Subgraph)
    assert found.captures == (x,)
    assert found.graph.nodes[0].inputs == (0, 0)
    assert unused not in found.graph.captured


def test_a_digest_is_the_same_for_ever() -> None:
    builder = Builder(21)
    x = builder.placeholder(F)
    w = builder.constant(Constant("float32", np.array([1.0, 2.0], np.float32)))
    (y,) = builder.node("Add", (x, w), (F,))
    (z,) = builder.node("LeakyRelu", (y,), (F,), {"alpha": 0.1})
    assert digest(builder.finish((z,))) == "4a50cea1ed3c602d1860b7d93869f920c2d71d67607934842c32a66582f6ef9a"


def test_a_long_chain_is_no_problem() -> None:
    graph = unary(*[("Neg" if number % 2 else "Abs", {}) for number in range(3000)])
    assert canonicalize(graph) == graph
