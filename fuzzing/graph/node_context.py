"""The context of one node, passed to the functions of its specification when generating and when reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from fuzzing.graph.intervals import Interval
from fuzzing.graph.ir import Attribute, Constant, Node, Subgraph
from fuzzing.graph.types import TensorType
from fuzzing.rng import Rng

if TYPE_CHECKING:
    from fuzzing.graph.operator_spec import OperatorSpec


@dataclass(frozen=True)
class GraphLimits:
    """Bounds on what is created.

    Isra's (released `settings.py`) are ranks and lengths of 1 to 5, at most 5 inputs and 5 outputs.

    max_elements  of any edge: Tile, Concat and Pad stop growing there
    """

    min_rank: int = 1
    max_rank: int = 5
    min_dim: int = 1
    max_dim: int = 5
    max_inputs: int = 5
    max_outputs: int = 5
    max_elements: int = 1 << 14


class TypedGraph(Protocol):
    """The part of a graph a node context reads: a graph, or one under type inference."""

    @property
    def opset(self) -> int:
        """Of the default domain."""
        ...

    @property
    def types(self) -> Sequence[TensorType]:
        """Of every edge, by number."""
        ...

    @property
    def constants(self) -> Mapping[int, Constant]:
        """The initializers, by edge."""
        ...


class NodeContext:
    """A node, existing or under construction.

    operator    its specification
    degree      how many inputs it has, counted to the last one given
    outputs     how many outputs are requested
    types, constants, ranges   of each input chosen so far; None for an omitted input, for one that is not
                a constant, for one of unknown values
    edges       the inputs, where there is a graph
    attributes  those given
    plan        the result of `OperatorSpec.plan`, for the drawing functions only
    x, shape, rank, dtype      the primary input's type; x is the empty float32 if there is none
    rng, limits, opset         the source of choices, and their bounds
    """

    __slots__ = (
        "attributes",
        "constants",
        "degree",
        "dtype",
        "edges",
        "limits",
        "operator",
        "opset",
        "outputs",
        "plan",
        "ranges",
        "rank",
        "rng",
        "shape",
        "types",
        "x",
    )  # fmt: skip

    def __init__(
        self, operator: OperatorSpec, opset: int, limits: GraphLimits, rng: Rng, degree: int
    ) -> None:
        self.operator = operator
        self.opset = opset
        self.limits = limits
        self.rng = rng
        self.degree = degree
        self.outputs = 1
        self.types: list[TensorType | None] = [None] * degree
        self.constants: list[Constant | None] = [None] * degree
        self.ranges: list[Interval | None] = [None] * degree
        self.edges: list[int | None] = [None] * degree
        self.attributes: dict[str, Attribute] = {}
        self.plan: Any = None

    @classmethod
    def from_node(cls, operator: OperatorSpec, graph: TypedGraph, node: Node) -> NodeContext:
        """The context of an existing node."""
        bodies = [value for value in node.attributes.values() if isinstance(value, Subgraph)]
        captures = bodies[0].captures if operator.captured and bodies else ()
        edges = (*captures[: operator.captured], *node.inputs)
        context = cls(operator, graph.opset, GraphLimits(), Rng(0), len(edges))
        context.outputs = len(node.outputs)
        context.attributes = dict(node.attributes)
        for position, edge in enumerate(edges):
            if edge is not None:
                context.edges[position] = edge
                context.types[position] = graph.types[edge]
                context.constants[position] = graph.constants.get(edge)
        if 0 <= operator.primary < len(edges):
            context.unpack_primary()
        return context

    def unpack_primary(self) -> None:
        """Sets `x`, `shape`, `rank` and `dtype` from the primary input."""
        primary = self.types[self.operator.primary]
        if primary is not None:
            self.x = primary
            self.dtype = primary.dtype
            self.shape = primary.shape or ()
            self.rank = len(self.shape)

    def given(self, position: int) -> bool:
        """Whether the input at this position is present."""
        return position < self.degree and self.types[position] is not None

    def type(self, position: int) -> TensorType:
        """The type of an input that is present."""
        found = self.types[position]
        if found is None:
            raise LookupError(f"{self.operator.name} has no input {position}")
        return found

    def dims(self, position: int) -> tuple[int, ...]:
        """The lengths of an input that is present and static."""
        return self.type(position).lengths

    def range(self, position: int) -> Interval:
        """The bounds on an input's elements; set for every input during generation."""
        found = self.ranges[position]
        if found is None:
            raise LookupError(f"nothing is known of the values of {self.operator.name}'s input {position}")
        return found

    def numbers(self, position: int) -> list[int]:
        """The elements of a constant integer input, flat: axes, shapes, pads."""
        constant = self.constants[position]
        if constant is None:
            raise LookupError(f"{self.operator.name}'s input {position} is no constant")
        found: list[int] = constant.array.reshape(-1).tolist()
        return found

    def get(self, name: str) -> Any:
        """An attribute, or its default by the specification."""
        found = self.attributes.get(name)
        return self.operator.defaults.get(name) if found is None else found

    def axis(self, name: str = "axis") -> int:
        """An axis attribute, counted from the front of the primary input."""
        axis: int = self.get(name)
        return axis + self.rank if axis < 0 else axis


def int64(*values: int) -> Constant:
    """A constant vector of int64."""
    return Constant("int64", np.array(values, np.int64))
