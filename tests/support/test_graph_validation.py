from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fuzzing.errors import InternalError
from fuzzing.graph import Builder, Constant, Graph, Node, Subgraph, TensorType
from fuzzing.graph.onnx_reader import from_onnx
from fuzzing.graph.types import ABSENT
from tests.support.graph_validation import validate
from tests.support.graphs import BRANCHES, model

F = TensorType("float32", (2,))


def sound() -> Graph:
    """Inputs 0 and 1, initializer 2, nodes that compute 3 and 4."""
    builder = Builder(21)
    x, y = builder.placeholder(F), builder.placeholder(F)
    w = builder.constant(Constant("float32", np.ones(2, np.float32)))
    (a,) = builder.node("Add", (x, w), (F,))
    return builder.finish(builder.node("Mul", (a, y), (F,)))


def test_a_sound_graph_passes() -> None:
    validate(sound())
    validate(from_onnx(model(BRANCHES)))


def second(inputs: tuple[int, ...] = (3, 1), outputs: tuple[int, ...] = (4,)) -> Graph:
    """The sound graph with a changed second node."""
    graph = sound()
    return replace(graph, nodes=(graph.nodes[0], graph.nodes[1]._replace(inputs=inputs, outputs=outputs)))


def first(node: Node) -> Graph:
    graph = sound()
    return replace(graph, nodes=(node, graph.nodes[1]))


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (second(inputs=(3, 9)), r"node 1 \(Mul\) of the graph uses edge 9 before it is defined"),
        (second(inputs=(4, 1)), "uses edge 4 before it is defined"),
        (second(outputs=(3,)), "edge 3 is an output of node 1"),
        (second(outputs=(7,)), "edge 7, an output of node 1 .* is none of 5"),
        (second(inputs=(0, 1), outputs=()), "gives edge 4, which nothing defines"),
        (replace(sound(), outputs=(6,)), "gives edge 6, which nothing defines"),
        (replace(sound(), inputs=(0, 0, 1)), "edge 0 is an input of the graph, and an input"),
        (replace(sound(), types=(F,) * 6), r"nothing defines edges \[5\]"),
        (replace(sound(), captured=(0,)), "no graph is around it"),
        (replace(sound(), names={0: "a", 1: "a"}), "edges 0 and 1 of the graph are both called 'a'"),
        (replace(sound(), names={9: "a"}), "a name for edge 9"),
        (
            replace(sound(), types=(F, F, TensorType("float32", (3,)), F, F)),
            r"edge 2 of the graph is float32\[3\], its data float32\[2\]",
        ),
        (replace(sound(), types=(F, F, F, ABSENT, F)), "edge 3 of the graph is left out, and yet used"),
        (
            replace(sound(), constants={2: Constant("bfloat16", np.ones(2, np.float32))}),
            "keeps bfloat16 as float32",
        ),
        (
            first(Node("Add", (0, 2), (3,), {"value": Constant("string", np.ones(1))})),
            "the attribute value of node 0",
        ),
    ],
)  # fmt: skip
def test_what_is_broken_is_told(graph: Graph, message: str) -> None:
    with pytest.raises(InternalError, match=message):
        validate(graph)


def test_a_node_that_gives_smaller_edges_than_it_uses_is_told() -> None:
    graph = sound()
    turned = graph.renumber({0: 4, 1: 1, 2: 2, 3: 3, 4: 0})
    with pytest.raises(InternalError, match="gives edge 3 and uses a larger one, 4"):
        validate(turned)


def branches(body: Subgraph) -> Graph:
    builder = Builder(21)
    condition, _ = builder.placeholder(TensorType("bool", ())), builder.placeholder(F)
    return builder.finish(builder.node("If", (condition,), (F,), {"then_branch": body, "else_branch": body}))


def inner(opset: int = 21, type_: TensorType = F) -> Graph:
    builder = Builder(opset)
    edge = builder.capture(type_)
    return builder.finish(builder.node("Relu", (edge,), (type_,)))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (Subgraph(inner(20), (1,)), "is of opset 20, its graph of 21"),
        (Subgraph(inner(), ()), "captures 1 edges and is fed 0"),
        (
            Subgraph(inner(type_=TensorType("float32", (3,))), (1,)),
            r"takes edge 1, float32\[2\], for float32\[3\]",
        ),
        (
            Subgraph(inner(type_=TensorType("int32", (2,))), (1,)),
            r"takes edge 1, float32\[2\], for int32\[2\]",
        ),
        (
            Subgraph(replace(inner(), outputs=(5,)), (1,)),
            r"the body then_branch of node 0 \(If\) .* gives edge 5",
        ),
    ],
)
def test_what_is_broken_in_a_body_is_told(body: Subgraph, message: str) -> None:
    with pytest.raises(InternalError, match=message):
        validate(branches(body))


def test_lengths_that_one_side_leaves_open_are_no_matter() -> None:
    validate(branches(Subgraph(inner(type_=TensorType("float32", (None,))), (1,))))
    validate(branches(Subgraph(inner(type_=TensorType("float32", None)), (1,))))
