"""One direction of recurrent operators that have two.

A bidirectional operator is two independent ones (ONNX operator reference). Its weights, biases and states
have an entry for each, so that the attribute cannot go alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fuzzing.graph.ir import Attribute, Constant, Graph, Node
from fuzzing.graph.types import TensorType

#: Operands with an entry for each direction along their first axis, by place: W, R, B and LSTM's peepholes P.
_WEIGHTS = (1, 2, 3, 7)
#: The initial states, whose axis of directions is the second one with `layout`.
_STATES = (5, 6)
_OPERATORS = frozenset({"RNN", "GRU", "LSTM"})
#: Attributes with an entry for each function of each direction.
_LISTS = ("activations", "activation_alpha", "activation_beta")


@dataclass(frozen=True)
class OneDirection:
    """A graph in which one node has one direction; what nodes give is still to be inferred.

    taken  the graph's inputs of which only one entry is left: edge → axis and place of the entry
    """

    graph: Graph
    taken: dict[int, tuple[int, int]]


def is_bidirectional(node: Node) -> bool:
    """Whether a node is a recurrent operator of two directions."""
    two = node.attributes.get("direction") == "bidirectional"
    return two and node.op in _OPERATORS and not node.domain


def single_directions(graph: Graph, number: int) -> Iterator[OneDirection]:
    """The graph with a bidirectional node forward, and in reverse; none if other nodes give it weights."""
    for place in (0, 1):
        found = _in_direction(graph, number, place)
        if found is not None:
            yield found


def _in_direction(graph: Graph, number: int, place: int) -> OneDirection | None:
    node, types, constants = graph.nodes[number], list(graph.types), dict(graph.constants)
    taken = dict[int, tuple[int, int]]()
    for edge, axis in _operands(node):
        shape = types[edge].shape
        if not (edge in graph.inputs or edge in constants) or shape is None or len(shape) <= axis:
            return None
        types[edge] = TensorType(types[edge].dtype, (*shape[:axis], 1, *shape[axis + 1 :]))
        if edge in constants:
            constants[edge] = Constant(constants[edge].dtype, constants[edge].array.take([place], axis))
        if edge in graph.inputs:
            taken[edge] = (axis, place)
    attributes = {name: _entries(name, value, place) for name, value in node.attributes.items()}
    attributes.pop("direction")
    if place:
        attributes["direction"] = "reverse"
    nodes = (*graph.nodes[:number], node._replace(attributes=attributes), *graph.nodes[number + 1 :])
    return OneDirection(replace(graph, nodes=nodes, types=tuple(types), constants=constants), taken)


def _operands(node: Node) -> Iterator[tuple[int, int]]:
    """Edges with an entry for each direction, and the axis of these."""
    for places, axis in ((_WEIGHTS, 0), (_STATES, 1 if node.attributes.get("layout") else 0)):
        for place in places:
            edge = node.inputs[place] if place < len(node.inputs) else None
            if edge is not None:
                yield edge, axis


def _entries(name: str, value: Attribute, place: int) -> Attribute:
    """The entries of one direction, of an attribute that has some for each."""
    if name not in _LISTS or not isinstance(value, tuple):
        return value
    half = len(value) // 2
    return value[place * half : (place + 1) * half]
