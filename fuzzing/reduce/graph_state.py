"""Operator graphs for reduction, with the value of each edge.

The library computes every edge's value once. If the nodes before an edge are removed, the edge becomes an
input with its value. An edge becomes an output only if nothing uses it any more, because further outputs
change what compilers fuse.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fuzzing.cases import OnnxModel, Recipe, Tensor, TestCase, Value
from fuzzing.cases.case import Input
from fuzzing.cases.plain_types import oddness
from fuzzing.cases.values import RAW_DTYPES
from fuzzing.errors import UsageError
from fuzzing.execute.evaluator import Evaluator
from fuzzing.graph import Constant, Graph, Node, TensorType
from fuzzing.graph.onnx_reader import from_onnx
from fuzzing.graph.onnx_writer import to_bytes
from fuzzing.graph.types import INTEGERS
from fuzzing.outcomes import Outcome
from fuzzing.reduce.input_values import complexity
from fuzzing.triage.proven_needs import positive_values

#: Bytes of values stored for edges inside the graph; further values are drawn when needed.
_MAX_VALUE_BYTES = 64 << 20


#: Preferred opsets, in order: 18 came with onnx 1.13, 21 with 1.16 (onnx, docs/Versioning.md).
OPSETS = (18, 21)


@dataclass(frozen=True)
class GraphState:
    """A graph, and the values of its edges.

    graph          each edge has a name that stays the same while others are removed
    values         by name: of the inputs, and of edges that may become inputs
    origin         the case it comes from, for all but program and inputs
    message_words  words of the failure's message, which may name operators
    tolerated      rules of ONNX that the case itself breaks, and so its candidates may
                   (`fuzzing.reduce.graph_validity`)
    """

    graph: Graph
    values: Mapping[str, Input]
    origin: TestCase
    message_words: frozenset[str] = frozenset()
    tolerated: frozenset[str] = frozenset()

    def case(self) -> TestCase:
        """The case: the model, its inputs, and no reference, as that is another program's."""
        graph = replace(self.graph, names={})
        inputs = tuple([(f"v{edge}", self.value(edge)) for edge in graph.inputs])
        return replace(self.origin, program=OnnxModel(to_bytes(graph)), inputs=inputs, expected=None)

    def value(self, edge: int) -> Input:
        """The value of an input; drawn, if the known value has another type."""
        type_ = self.graph.types[edge]
        given = self.values.get(self.graph.names[edge])
        if isinstance(given, (Tensor, Recipe)) and (given.dtype, given.shape) == tuple(type_):
            return given
        return _default_value(type_)


def _default_value(type_: TensorType) -> Input:
    """A value for an edge without a known one."""
    floats = type_.dtype in ("float16", "float32", "float64")
    if type_.dtype in RAW_DTYPES:
        return Tensor.of(np.zeros(type_.lengths, _carrier_dtype(type_.dtype)), type_.dtype)
    return Recipe("uniform" if floats else "integers", type_.dtype, type_.lengths, 0.0, 1.0, 0)


def _carrier_dtype(dtype: str) -> str:
    return "uint16" if dtype == "bfloat16" else "uint8"


def load(case: TestCase, evaluator: Evaluator, outcome: Outcome | None = None) -> GraphState:
    """The graph of a case, with the library's value of every edge and the words of the failure's message.

    Raises UsageError for a graph whose inputs have no known shape.
    """
    assert isinstance(case.program, OnnxModel)
    graph = from_onnx(case.program.model)
    given = dict(case.inputs)
    names = {edge: f"e{edge}" for edge in range(len(graph.types))}
    values = {names[edge]: given[graph.names.get(edge, f"v{edge}")] for edge in graph.inputs}
    message_words = frozenset(re.findall(r"\w+", outcome.evidence.message if outcome is not None else ""))
    state = GraphState(_with_input_shapes(replace(graph, names=names), values), values, case, message_words)
    if any(not state.graph.types[edge].static for edge in state.graph.inputs):
        raise UsageError("a graph is reduced with inputs of known shapes, and this one leaves some open")
    return _record_values(state, evaluator)


def _with_input_shapes(graph: Graph, values: Mapping[str, Input]) -> Graph:
    """The graph with the shapes of its inputs' values."""
    types = list(graph.types)
    for edge in graph.inputs:
        value = values[graph.names[edge]]
        if isinstance(value, (Tensor, Recipe)):
            types[edge] = TensorType(value.dtype, value.shape)
    return replace(graph, types=tuple(types))


# Values


def _record_values(state: GraphState, evaluator: Evaluator) -> GraphState:
    """The state with the library's value of every edge, and the shape that it has."""
    graph = state.graph
    edges = [edge for node in graph.nodes for edge in node.outputs if graph.types[edge].dtype.isalnum()]
    observed, places = _make_observable(graph, edges)
    found = dict(evaluator.reference(replace(state, graph=observed).case()) or ())
    room, values, types = _MAX_VALUE_BYTES, dict(state.values), list(graph.types)
    for edge in edges:
        value = _observed_value([found.get(f"v{place}") for place in places[edge]])
        if value is None or not _has_type(value, graph.types[edge]):
            continue  # where the library errs, the case would break a rule, and each candidate might
        if (room := room - len(value.data)) > 0:
            values[graph.names[edge]] = value
            types[edge] = TensorType(value.dtype, value.shape)
    return replace(state, graph=replace(graph, types=tuple(types)), values=values)


def _has_type(value: Tensor, declared: TensorType) -> bool:
    if value.dtype != declared.dtype or declared.shape is None:
        return value.dtype == declared.dtype
    pairs = zip(declared.shape, value.shape, strict=False)
    return len(declared.shape) == len(value.shape) and all(one in (None, other) for one, other in pairs)


def _make_observable(graph: Graph, edges: Iterable[int]) -> tuple[Graph, dict[int, tuple[int, ...]]]:
    """The graph with all values as outputs; edge → the outputs that show it.

    ONNX requires the rank of an output. An edge of unknown rank, as an If gives it whose branches differ, is
    shown by its shape and its elements in a row.
    """
    types, nodes, constants = list(graph.types), list(graph.nodes), dict(graph.constants)
    places: dict[int, tuple[int, ...]] = {}
    for edge in edges:
        dtype, shape = graph.types[edge]
        if shape is not None:
            places[edge] = (edge,)
            continue
        row, length, flat = range(len(types), len(types) + 3)
        constants[row] = Constant("int64", np.array([-1]))
        types += [constants[row].type, TensorType("int64", (None,)), TensorType(dtype, (None,))]
        nodes += [Node("Shape", (edge,), (length,), {}), Node("Reshape", (edge, row), (flat,), {})]
        places[edge] = (length, flat)
    outputs = tuple(place for shown in places.values() for place in shown)
    changed = replace(graph, types=tuple(types), constants=constants, nodes=tuple(nodes), outputs=outputs)
    return changed, places


def _observed_value(shown: Sequence[Value | None]) -> Tensor | None:
    match shown:
        case [Tensor() as value]:
            return value
        case [Tensor() as shape, Tensor() as flat]:
            return replace(flat, shape=tuple(shape.array().tolist()))
    return None


# Size


def size(state: GraphState) -> tuple[float, ...]:
    """Number of nodes, edges, attributes, unusual types, empty tensors, operands given twice and negative
    attributes, inputs, dimensions and elements; then the values' complexity.

    Nodes and their edges and attributes in bodies count too.
    """
    graph = state.graph
    nodes = list(_all_nodes(graph))
    used_edges = sum(len(list(node.used_edges())) for node in nodes)
    attributes = sum(len(node.attributes) for node in nodes)
    outputs = len(graph.outputs) + sum(len(node.outputs) for node in nodes)
    ranks = elements = lengths = broken = odd = empty = 0
    for edge in (*graph.inputs, *graph.constants):
        type_ = graph.types[edge]
        given = state.value(edge) if edge in graph.inputs else constant_to_tensor(graph.constants[edge])
        count, off, strange = complexity(given)
        ranks, lengths = ranks + type_.rank, lengths + sum(type_.lengths)
        elements, broken, odd = elements + count, broken + off, odd + strange
        empty += 0 in type_.lengths
    inputs, unusual = (
        len(graph.inputs),
        oddness(type_.dtype for type_ in graph.types)
        + sum(type_.dtype in INTEGERS for type_ in graph.types)
        + empty
        + sum(map(_repeated, nodes))
        + sum(map(_negative, nodes)),
    )
    age = OPSETS.index(graph.opset) if graph.opset in OPSETS else len(OPSETS)
    return (
        len(nodes),
        used_edges,
        outputs,
        attributes,
        unusual,
        age,
        inputs,
        ranks,
        elements,
        lengths,
        broken,
        odd,
    )


def _repeated(node: Node) -> int:
    """How many operands of a node are also others."""
    given = [edge for edge in node.inputs if edge is not None]
    return len(given) - len(set(given))


def _negative(node: Node) -> int:
    """How many attributes of a node have a negative number."""
    return sum(bool(positive_values(value, None)) for value in node.attributes.values())


def _all_nodes(graph: Graph) -> Iterator[Node]:
    for node in graph.nodes:
        yield node
        for body in node.subgraphs():
            yield from _all_nodes(body.graph)


def constant_to_tensor(constant: Constant) -> Tensor:
    """An initializer as an input's value."""
    return Tensor.of(constant.array, constant.dtype)


def key(state: GraphState) -> str:
    """SHA-256, in hex, of the graph without names, and its inputs' values."""
    hashed = hashlib.sha256(to_bytes(replace(state.graph, names={})))
    for edge in state.graph.inputs:
        hashed.update(repr(state.value(edge)).encode())
    return hashed.hexdigest()
