"""The operator graph that generators build, mutators change and reducers cut.

Edges are numbers in the order of definition, and a node only uses smaller numbers than it defines. Every
graph is therefore acyclic and topologically ordered, a node moves to another graph by renumbering, and
equal graphs are equal tuples. Operators, attributes and input order are ONNX's, at the graph's opset.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fuzzing.graph.types import ABSENT, TensorType

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Constant:
    """A tensor known before execution: an initializer, or an attribute that holds a tensor.

    dtype   its ONNX element type
    array   its elements in the carrier type of `fuzzing.cases.values`, strings as objects; never written to
    """

    dtype: str
    array: Array

    @property
    def type(self) -> TensorType:
        """The tensor's type."""
        return TensorType(self.dtype, self.array.shape)

    def key(self) -> tuple[str, tuple[int, ...], bytes]:
        """A key equal for equal constants."""
        data = self.array.tobytes() if self.array.dtype != object else repr(self.array.tolist()).encode()
        return self.dtype, self.array.shape, data

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and self.key() == other.key()

    def __hash__(self) -> int:
        return hash(self.key())


@dataclass(frozen=True)
class Subgraph:
    """A graph held by an attribute: a branch of If, the body of Loop or Scan.

    graph     its inputs are what the operator passes, its `captured` edges what it takes from outside
    captures  the edges of the enclosing graph that feed `graph.captured`, one by one
    """

    graph: Graph
    captures: tuple[int, ...] = ()


@dataclass(frozen=True)
class TypeValue:
    """An attribute that is a type, such as the one of Optional."""

    type: TensorType


Attribute: TypeAlias = (
    int
    | float
    | str
    | tuple[int, ...]
    | tuple[float, ...]
    | tuple[str, ...]
    | Constant
    | Subgraph
    | TypeValue
)


def to_single_precision(number: float) -> float:
    """The shortest decimal number equal to this one in single precision, ONNX's attribute type."""
    return number if math.isnan(number) else float(str(np.float32(number)))


def normalize_attribute(value: Attribute) -> Attribute:
    """The attribute as it reads back from a model."""
    if isinstance(value, float):
        return to_single_precision(value)
    if isinstance(value, tuple) and value and isinstance(value[0], float):
        return tuple([to_single_precision(number) for number in value])
    return value


class Node(NamedTuple):
    """One application of an operator.

    inputs      edges; None for an optional input omitted before one that is given
    outputs     edges of its own; those of type ABSENT for optional outputs that are omitted
    attributes  those given, floats in single precision; ONNX's defaults hold for the rest
    """

    op: str
    inputs: tuple[int | None, ...]
    outputs: tuple[int, ...]
    attributes: Mapping[str, Attribute]
    domain: str = ""

    def used_edges(self) -> Iterator[int]:
        """The edges it takes, with multiplicity, including those its bodies capture."""
        for edge in self.inputs:
            if edge is not None:
                yield edge
        for body in self.subgraphs():
            yield from body.captures

    def subgraphs(self) -> Iterator[Subgraph]:
        """The graphs in its attributes."""
        for value in self.attributes.values():
            if isinstance(value, Subgraph):
                yield value

    def replace_inputs(self, numbers: Mapping[int, int]) -> Node:
        """The node with `numbers[e]` for each edge e that it uses; other edges stay."""
        get = numbers.get
        attributes = {
            name: Subgraph(value.graph, tuple([get(edge, edge) for edge in value.captures]))
            if isinstance(value, Subgraph)
            else value
            for name, value in self.attributes.items()
        }
        inputs = tuple([None if edge is None else get(edge, edge) for edge in self.inputs])
        return self._replace(inputs=inputs, attributes=attributes)

    def renumber(self, numbers: Mapping[int, int]) -> Node:
        """The node with `numbers[e]` for each edge e that it uses or defines."""
        return self.replace_inputs(numbers)._replace(outputs=tuple([numbers[edge] for edge in self.outputs]))


@dataclass(frozen=True)
class Graph:
    """A model.

    opset      of the default domain
    types      of every edge, by number
    inputs     the placeholders, in order
    constants  the initializers, by edge; for an edge that is also an input, its default
    nodes      in topological order
    outputs    the model's outputs, in order
    captured   of a body: edges that the enclosing graph feeds
    opsets     of other domains
    names      names of edges in the model that was read; the writer makes up the others
    """

    opset: int
    types: tuple[TensorType, ...]
    inputs: tuple[int, ...]
    constants: Mapping[int, Constant]
    nodes: tuple[Node, ...]
    outputs: tuple[int, ...]
    captured: tuple[int, ...] = ()
    opsets: Mapping[str, int] = field(default_factory=dict)
    names: Mapping[int, str] = field(default_factory=dict, compare=False)

    def producers(self) -> dict[int, Node]:
        """The node that defines each edge, of those that nodes define."""
        return {edge: node for node in self.nodes for edge in node.outputs}

    def consumers(self) -> dict[int, list[Node]]:
        """The nodes that use each edge, once for each use."""
        found: dict[int, list[Node]] = {}
        for node in self.nodes:
            for edge in node.used_edges():
                found.setdefault(edge, []).append(node)
        return found

    def renumber(self, numbers: Mapping[int, int]) -> Graph:
        """The graph with `numbers[e]` for each edge e; edges that are not keys must be unused.

        Node order and names stay, generated names included, so each edge keeps its name in the model.
        """
        types: list[TensorType] = [ABSENT] * len(numbers)
        for old, new in numbers.items():
            types[new] = self.types[old]
        names = {
            new: self.names.get(old, f"v{old}")
            for old, new in sorted(numbers.items())
            if old in self.names or old != new
        }
        return replace(
            self,
            types=tuple(types),
            inputs=tuple([numbers[edge] for edge in self.inputs]),
            constants={
                numbers[edge]: self.constants[edge]
                for edge in sorted(self.constants, key=lambda edge: numbers[edge])
            },
            nodes=tuple([node.renumber(numbers) for node in self.nodes]),
            outputs=tuple([numbers[edge] for edge in self.outputs]),
            captured=tuple([numbers[edge] for edge in self.captured]),
            names=names,
        )


class Builder:
    """Builds a graph forward: edges first, then the nodes that use them."""

    __slots__ = ("captured", "constants", "inputs", "nodes", "opset", "types")

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.types: list[TensorType] = []
        self.inputs: list[int] = []
        self.captured: list[int] = []
        self.constants: dict[int, Constant] = {}
        self.nodes: list[Node] = []

    def placeholder(self, type_: TensorType) -> int:
        """Adds a graph input; returns its edge."""
        edge = self._edge(type_)
        self.inputs.append(edge)
        return edge

    def capture(self, type_: TensorType) -> int:
        """Adds an edge that the enclosing graph feeds; returns it."""
        edge = self._edge(type_)
        self.captured.append(edge)
        return edge

    def constant(self, constant: Constant) -> int:
        """Adds an initializer; returns its edge."""
        edge = self._edge(constant.type)
        self.constants[edge] = constant
        return edge

    def node(
        self,
        op: str,
        inputs: tuple[int | None, ...],
        types: tuple[TensorType, ...],
        attributes: Mapping[str, Attribute] | None = None,
        domain: str = "",
    ) -> tuple[int, ...]:
        """Adds a node whose outputs have these types; returns their edges."""
        first = len(self.types)
        self.types.extend(types)
        outputs = tuple(range(first, first + len(types)))
        kept = {name: normalize_attribute(value) for name, value in attributes.items()} if attributes else {}
        self.nodes.append(Node(op, inputs, outputs, kept, domain))
        return outputs

    def finish(self, outputs: tuple[int, ...]) -> Graph:
        """The graph with these outputs."""
        return Graph(
            opset=self.opset,
            types=tuple(self.types),
            inputs=tuple(self.inputs),
            constants=dict(self.constants),
            nodes=tuple(self.nodes),
            outputs=outputs,
            captured=tuple(self.captured),
        )

    def _edge(self, type_: TensorType) -> int:
        self.types.append(type_)
        return len(self.types) - 1
