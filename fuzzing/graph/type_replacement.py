"""A graph with other element types in place of some of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from fuzzing.cases import Tensor
from fuzzing.cases.plain_types import cast_tensor
from fuzzing.graph.ir import Constant, Graph, Node
from fuzzing.graph.onnx_types import DTYPES
from fuzzing.graph.types import INTEGERS, TensorType

#: Attributes that name an element type by its number (ONNX operator reference).
_NAMING = ("dtype", "output_dtype", "to")


#: Integers, with the type that stands for all numbers.
INTEGERS_TO_FLOAT = dict.fromkeys(INTEGERS, "float32")


def number_edges(graph: Graph) -> Iterator[frozenset[int]]:
    """Inputs and initializers that may be numbers of any type: all, or those that are first operands, beside
    which the others may be axes, lengths and indices.
    """
    given = frozenset([*graph.inputs, *graph.constants])
    yield given
    first = {node.inputs[0] for node in graph.nodes if node.inputs}
    if given & first != given:
        yield frozenset(given & first)


def replace_types(
    graph: Graph, replacements: Mapping[str, str], edges: Collection[int] | None = None
) -> Graph:
    """The graph with inputs and initializers of other element types, in nodes that name one too; what nodes
    give is still to be inferred.

    edges  those that change; by default all
    """
    types, constants = list(graph.types), dict(graph.constants)
    for edge in (*graph.inputs, *constants):
        new = replacements.get(types[edge].dtype)
        if new is None or (edges is not None and edge not in edges):
            continue
        if edge in constants:
            changed = cast_tensor(Tensor.of(constants[edge].array, constants[edge].dtype), new)
            if changed is None:
                continue
            constants[edge] = Constant(new, changed.array())
        types[edge] = TensorType(new, types[edge].shape)
    nodes = tuple([_replace_named_types(node, replacements) for node in graph.nodes])
    return replace(graph, types=tuple(types), constants=constants, nodes=nodes)


def _replace_named_types(node: Node, replacements: Mapping[str, str]) -> Node:
    """A node that names an element type (Cast, RandomUniform, EyeLike, …) with its replacement instead."""
    codes = {DTYPES[old]: DTYPES[new] for old, new in replacements.items() if old in DTYPES and new in DTYPES}
    named = {
        name: codes[code]
        for name in _NAMING
        if isinstance(code := node.attributes.get(name), int) and code in codes
    }
    return node._replace(attributes={**node.attributes, **named}) if named else node
