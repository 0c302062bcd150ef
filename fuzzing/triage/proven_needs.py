"""Proven needs: what a finished reduction tried to do without, and could not.

It takes attributes and optional inputs away one at a time. Where the model without one is legal, it was run
and did not fail, so that what is left is the bug's: a bug that does not need it is another. Where the model
is illegal without it, as a convolution's without `group` alone, nothing is known. So with element types and
two directions, in whose place it tries plainer types and one direction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import onnx

from fuzzing.cases import Recipe, Tensor, TestCase
from fuzzing.cases.plain_types import plainer_types
from fuzzing.errors import UsageError
from fuzzing.graph import Constant, Graph, Node
from fuzzing.graph.ir import Attribute
from fuzzing.graph.recurrent_directions import is_bidirectional, single_directions
from fuzzing.graph.transformations import prune, retype
from fuzzing.graph.type_replacement import INTEGERS_TO_FLOAT, number_edges, replace_types
from fuzzing.graph.types import ABSENT
from fuzzing.graph.validity import find_violations
from fuzzing.triage.traits import INTEGER_CLASSES, dtype_class

#: Nodes of a graph that is looked at; reduced ones have one to four.
_MAX_NODES = 4
#: Elements of an input on whose values shapes may depend, as in `fuzzing.reduce.graph_typing`.
_MAX_ELEMENTS = 32

#: Optional inputs that have to be given together (ONNX operator reference); its inference accepts one alone.
_TOGETHER = frozenset({"Attention.past_key", "Attention.past_value"})

#: Schema of a node; None for an operator that ONNX does not know.
SchemaOf = Callable[[Node], onnx.defs.OpSchema | None]


@dataclass(frozen=True)
class ProvenNeeds:
    """Attributes, element types and the like, and optional inputs, by the names that needs have."""

    attributes: set[str] = field(default_factory=set)
    inputs: set[str] = field(default_factory=set)


def positive_values(value: Attribute, rank: int | None) -> list[int | tuple[int, ...]]:
    """A negative number, or a list with some, without its sign: counted from the front, if it is an axis of
    `rank`, or the number itself. None for what has no negative number.
    """
    numbers = [one for one in (value if isinstance(value, tuple) else (value,)) if isinstance(one, int)]
    if not any(one < 0 for one in numbers):
        return []
    turned = [[one + rank if one < 0 else one for one in numbers]] if rank else []
    turned.append([abs(one) for one in numbers])
    legal = [tuple(found) for found in turned if min(found) >= 0]
    return [found if isinstance(value, tuple) else found[0] for found in legal]


def find_proven_needs(case: TestCase, graph: Graph, schema_of: SchemaOf) -> ProvenNeeds:
    """The proven needs of a case, if its reduction was finished. `graph` is its model's, with names."""
    found = ProvenNeeds()
    if len(graph.nodes) > _MAX_NODES:
        return found
    known = _known_inputs(case, graph)
    for number, node in enumerate(graph.nodes):
        schema = schema_of(node)
        if schema is None:
            continue
        for name, variant in _without_attributes(node, schema, graph):
            if name not in found.attributes and _is_legal(graph, number, variant, known):
                found.attributes.add(name)
        for name, variant in _without_inputs(node, schema):
            if name not in _TOGETHER and _is_legal(graph, number, variant, known):
                found.inputs.add(name)
    found.attributes.update(_proven_directions(graph, known))
    found.attributes.update(_proven_types(graph, known))
    found.attributes.update(
        f"{dtype_class(graph.types[edge].dtype)} inputs" for edge in operand_inputs(graph)
    )
    return found


def operand_inputs(graph: Graph) -> list[int]:
    """The graph's inputs that are integers and operands behind the first alone, such as axes and lengths: as
    initializers they would have their places. None if nothing would remain that the graph is given.
    """
    first = {node.inputs[0] for node in graph.nodes if node.inputs}
    inner = {edge for node in graph.nodes for body in node.subgraphs() for edge in body.captures}
    operands = [
        edge
        for edge in graph.inputs
        if edge not in first | inner | {*graph.outputs} and "int" in graph.types[edge].dtype
    ]
    return operands if len(operands) < len(graph.inputs) else []


def _without_attributes(node: Node, schema: onnx.defs.OpSchema, graph: Graph) -> Iterator[tuple[str, Node]]:
    rank = next((graph.types[edge].shape for edge in node.inputs if edge is not None), None)
    for name, value in node.attributes.items():
        if name not in schema.attributes or schema.attributes[name].required:
            continue
        text = f"={value}" if isinstance(value, str) else ""
        left = {other: kept for other, kept in node.attributes.items() if other != name}
        yield f"{node.op}.{name}{text}", node._replace(attributes=left)
        for positive in positive_values(value, None if rank is None else len(rank)):
            yield f"{node.op}.{name} negative", node._replace(attributes={**left, name: positive})


def _without_inputs(node: Node, schema: onnx.defs.OpSchema) -> Iterator[tuple[str, Node]]:
    for place, formal in enumerate(schema.inputs[: len(node.inputs)]):
        optional = formal.option == onnx.defs.OpSchema.FormalParameterOption.Optional
        if optional and node.inputs[place] is not None:
            inputs = [None if at == place else edge for at, edge in enumerate(node.inputs)]
            while inputs and inputs[-1] is None:
                inputs.pop()
            yield f"{node.op}.{formal.name}", node._replace(inputs=tuple(inputs))


def _proven_directions(graph: Graph, known: Mapping[int, Constant]) -> Iterator[str]:
    closed = _closed(graph, graph.nodes, known)
    for number, node in enumerate(graph.nodes):
        singles = single_directions(closed, number) if is_bidirectional(node) else ()
        if any(_is_legal_model(single.graph) for single in singles):
            yield f"{node.op}.direction=bidirectional"


def _proven_types(graph: Graph, known: Mapping[int, Constant]) -> Iterator[str]:
    """Element types of the graph in whose place a plainer one is legal, and classes of integers that may be
    float32.
    """
    closed = _closed(graph, graph.nodes, known)
    for dtype in sorted({type_.dtype for type_ in graph.types}):
        for plain in plainer_types(dtype):
            if _is_legal_model(replace_types(closed, {dtype: plain})):
                yield dtype
                if dtype_class(dtype) == "uint" and dtype_class(plain) == "int":
                    yield "uint"
    for edges in number_edges(closed):
        classes = {dtype_class(graph.types[edge].dtype) for edge in edges & {*graph.inputs}} & INTEGER_CLASSES
        if classes and _is_legal_model(replace_types(closed, INTEGERS_TO_FLOAT, edges)):
            yield from sorted(classes)


def _is_legal(graph: Graph, number: int, node: Node, known: Mapping[int, Constant]) -> bool:
    """Whether the graph with another node in the place of one is a legal model."""
    nodes = (*graph.nodes[:number], node, *graph.nodes[number + 1 :])
    return _is_legal_model(_closed(graph, nodes, known))


def _closed(graph: Graph, nodes: tuple[Node, ...], known: Mapping[int, Constant]) -> Graph:
    """The graph with these nodes, and with the inputs that are known as constants."""
    inputs = tuple([edge for edge in graph.inputs if edge not in known])
    return replace(graph, nodes=nodes, inputs=inputs, constants={**graph.constants, **known}, names={})


def _is_legal_model(closed: Graph) -> bool:
    try:
        typed = retype(prune(closed, closed.outputs))
    except UsageError:
        return False
    if any(typed.types[edge].shape is None for edge in typed.outputs if typed.types[edge] != ABSENT):
        return False
    return not find_violations(typed, lambda edge: _array(typed, edge))


def _array(graph: Graph, edge: int) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]] | None:
    return np.asarray(graph.constants[edge].array) if edge in graph.constants else None


def _known_inputs(case: TestCase, graph: Graph) -> dict[int, Constant]:
    """The small inputs, as constants: shapes may depend on their values."""
    given, found = dict(case.inputs), dict[int, Constant]()
    for edge in graph.inputs:
        value = given.get(graph.names.get(edge, f"v{edge}"))
        if isinstance(value, Recipe):
            value = value.draw()
        dtype = graph.types[edge].dtype
        if isinstance(value, Tensor) and dtype in ("int32", "int64", "float32"):
            array = value.array()
            if array.size <= _MAX_ELEMENTS:
                found[edge] = Constant(dtype, array)
    return found
