"""The canonical form of a graph, and its digest.

Equal nodes on equal inputs are merged, unused nodes removed, and edges numbered in the order in which a
walk from the outputs meets them, so names and node order make no difference. The order of inputs does,
for commutative operators too: compilers handle x + y and y + x in different code.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from fuzzing.graph.ir import Attribute, Constant, Graph, Node, Subgraph, TypeValue, normalize_attribute
from fuzzing.graph.types import ABSENT

Key: TypeAlias = tuple[Hashable, ...]

#: Operators that give something else each time (ONNX operator reference): equal ones are not one. Dropout
#: draws where it trains.
RANDOM = frozenset(
    {"Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike"}
    | {"RandomUniform", "RandomUniformLike"}
)


def canonicalize(graph: Graph) -> Graph:
    """The canonical form: without names, with all inputs, initializers in the order of their use.

    Graphs that differ only in names, node order, unused nodes or repeated nodes have the same canonical form.
    """
    return _canonicalize(graph)[0]


def digest(graph: Graph) -> str:
    """SHA-256 of the canonical form's content, in hexadecimal.

    Independent of the machine and of the versions of onnx and protobuf; inferred types are left out.
    """
    hashed = hashlib.sha256()
    for part in _encode(_content(canonicalize(graph))):
        hashed.update(part)
    return hashed.hexdigest()


def attribute_key(value: Attribute) -> Key:
    """A key equal for equal attributes: floats by their bits in single precision, bodies by content."""
    if isinstance(value, Constant):
        return ("tensor", *value.key())
    if isinstance(value, Subgraph):
        return ("graph", *_content(value.graph))
    if isinstance(value, TypeValue):
        return ("type", *value.type)
    if isinstance(value, tuple):
        return ("list", *(_number(item) for item in value))
    return (_number(value),)


def _number(value: float | str) -> Hashable:
    # 1 and 1.0 are equal and hash alike, as do 0.0 and -0.0, and NaN equals nothing.
    return struct.pack("<f", value) if isinstance(value, float) else value


@dataclass
class _EdgeClasses:
    """Maps each edge to the first edge that carries the same value."""

    of: dict[int, int]
    nodes: dict[int, Node]  # by each output's edge, of the first edges alone


def _canonicalize(graph: Graph) -> tuple[Graph, tuple[int, ...]]:
    """The canonical form, and the positions in `graph.captured` that it still captures."""
    classes = _merge_equal_edges(graph)
    outputs = tuple([classes.of[edge] for edge in graph.outputs])
    order = list(_order_nodes(classes, outputs))
    numbers = _numbers(graph, outputs, order)
    captured = [edge for edge in graph.captured if edge in numbers]
    captured.sort(key=lambda edge: numbers[edge])
    made = Graph(
        opset=graph.opset,
        types=tuple([graph.types[edge] for edge in sorted(numbers, key=lambda edge: numbers[edge])]),
        inputs=tuple([numbers[edge] for edge in graph.inputs]),
        constants={numbers[edge]: constant for edge, constant in _keep_captured(graph, numbers)},
        nodes=tuple([node.renumber(numbers) for node in order]),
        outputs=tuple([numbers[edge] for edge in outputs]),
        captured=tuple([numbers[edge] for edge in captured]),
        opsets=dict(sorted(graph.opsets.items())),
    )
    places = {edge: place for place, edge in enumerate(graph.captured)}
    return made, tuple([places[edge] for edge in captured])


def _keep_captured(graph: Graph, numbers: Mapping[int, int]) -> list[tuple[int, Constant]]:
    kept = [item for item in graph.constants.items() if item[0] in numbers]
    return sorted(kept, key=lambda item: numbers[item[0]])


def _merge_equal_edges(graph: Graph) -> _EdgeClasses:
    classes = _EdgeClasses({edge: edge for edge in (*graph.inputs, *graph.captured)}, {})
    seen: dict[Key, tuple[int, ...]] = {}
    for edge, constant in sorted(graph.constants.items()):
        if edge not in classes.of:  # not what an input holds by default: whoever runs it may change that
            classes.of[edge] = seen.setdefault(("constant", *constant.key()), (edge,))[0]
    for number, node in enumerate(graph.nodes):
        made = _simplify_node(node, classes.of)
        absent = tuple([graph.types[edge] == ABSENT for edge in node.outputs])
        attributes = tuple([(name, attribute_key(value)) for name, value in made.attributes.items()])
        captures = tuple([body.captures for body in made.subgraphs()])
        unique = number if is_random(node) else -1
        key = (node.domain, node.op, made.inputs, absent, attributes, captures, unique)
        first = seen.setdefault(key, node.outputs)
        if first is node.outputs:
            classes.nodes.update(dict.fromkeys(node.outputs, made))
        classes.of.update(zip(node.outputs, first, strict=True))
    return classes


def is_random(node: Node) -> bool:
    """Whether the node, or one in its bodies, is nondeterministic."""
    if node.op in RANDOM and node.domain == "":
        return True
    return any(is_random(inner) for body in node.subgraphs() for inner in body.graph.nodes)


def _simplify_node(node: Node, of: Mapping[int, int]) -> Node:
    attributes: dict[str, Attribute] = {}
    for name, value in sorted(node.attributes.items()):
        attributes[name] = _body(value, of) if isinstance(value, Subgraph) else normalize_attribute(value)
    inputs = tuple([None if edge is None else of[edge] for edge in node.inputs])
    return node._replace(inputs=inputs, attributes=attributes)


def _body(body: Subgraph, of: Mapping[int, int]) -> Subgraph:
    inner = body.graph
    feeds = [of[edge] for edge in body.captures]
    first: dict[int, int] = {}
    merged = {edge: first.setdefault(feed, edge) for edge, feed in zip(inner.captured, feeds, strict=True)}
    if any(edge != kept for edge, kept in merged.items()):
        inner = replace(
            inner,
            nodes=tuple([node.replace_inputs(merged) for node in inner.nodes]),
            outputs=tuple([merged.get(edge, edge) for edge in inner.outputs]),
        )
    made, places = _canonicalize(inner)
    return Subgraph(made, tuple([feeds[place] for place in places]))


def _order_nodes(classes: _EdgeClasses, outputs: Sequence[int]) -> Iterator[Node]:
    done: set[int] = set()
    stack: list[tuple[int, bool]] = [(edge, False) for edge in reversed(outputs)]
    while stack:
        edge, ready = stack.pop()
        node = classes.nodes.get(edge)
        if node is None or node.outputs[0] in done:
            continue
        if ready:
            done.add(node.outputs[0])
            yield node
        else:
            stack.append((edge, True))
            stack += [(used, False) for used in reversed(list(node.used_edges()))]


def _numbers(graph: Graph, outputs: Sequence[int], order: Sequence[Node]) -> dict[int, int]:
    numbers: dict[int, int] = {}
    for edge in graph.inputs:
        numbers[edge] = len(numbers)
    for node in order:
        for edge in (*node.used_edges(), *node.outputs):
            numbers.setdefault(edge, len(numbers))
    for edge in outputs:  # constants and captured edges that are outputs as they are
        numbers.setdefault(edge, len(numbers))
    return numbers


def _content(graph: Graph) -> Key:
    used = {node.domain for node in graph.nodes}
    return (
        ("opset", graph.opset, *((name, graph.opsets[name]) for name in graph.opsets if name in used)),
        ("given", *((edge, *graph.types[edge]) for edge in (*graph.inputs, *graph.captured))),
        ("constants", *((edge, *constant.key()) for edge, constant in graph.constants.items())),
        *(_node_content(node, graph) for node in graph.nodes),
        ("outputs", *graph.outputs),
    )


def _node_content(node: Node, graph: Graph) -> Key:
    outputs = tuple([None if graph.types[edge] == ABSENT else edge for edge in node.outputs])
    attributes = tuple([(name, *attribute_key(value)) for name, value in node.attributes.items()])
    captures = tuple([body.captures for body in node.subgraphs()])
    return (node.domain, node.op, node.inputs, outputs, attributes, captures)


def _encode(value: Any) -> Iterator[bytes]:
    """A nested tuple as bytes that determine its structure, each leaf with its kind and length."""
    if isinstance(value, tuple):
        yield b"(%d:" % len(value)
        for item in value:
            yield from _encode(item)
        return
    data = value if isinstance(value, bytes) else repr(value).encode("utf-8", "surrogateescape")
    yield b"%s%d:" % (b"b" if isinstance(value, bytes) else b"r", len(data))
    yield data
