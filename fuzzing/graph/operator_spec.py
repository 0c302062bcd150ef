"""Operator specifications as data: the valid nodes of each operator, and what they compute.

The functions of a specification take a `NodeContext`: one node, when generating and when reading.

A specification keeps every later choice non-empty whatever was chosen before, in Isra's order (seed
paper): in-degree, first input, attributes, remaining inputs, outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np

from fuzzing.graph.intervals import Interval, moderate_range
from fuzzing.graph.ir import Attribute, Builder, Constant, Node, Subgraph
from fuzzing.graph.types import FLOATS, Shape, TensorType
from fuzzing.rng import Rng

ANY_RANK = tuple(range(9))


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


class Domain(Protocol):
    """The valid values of an attribute; see `fuzzing.graph.attribute_domains`."""

    def draw(self, context: NodeContext) -> Attribute:
        """Draws a value."""
        ...

    def contains(self, value: Attribute, context: NodeContext) -> bool:
        """Whether a value is valid."""
        ...


@dataclass(frozen=True)
class AttributeSpec:
    """An attribute of an operator.

    domain   its valid values
    omit     probability of omission, which leaves ONNX's default; 0 if it is required, or its default
             does not fit every input
    default  ONNX's default, for the shape function
    """

    name: str
    domain: Domain
    omit: float = 0.0
    default: Any = None


@dataclass(frozen=True)
class DataInput:
    """An input that carries data: an edge of the graph, or a new placeholder.

    shape   the required shape, given what is chosen before; None in it: any length
    dtype   an element type, or a function that gives it; None: the primary input's
    within  the bounds of its elements; None: moderate for its type
    omit    probability of omission, if it is not the last input
    many    stands for all inputs from here on
    """

    shape: Callable[[NodeContext], Shape]
    dtype: str | Callable[[NodeContext], str] | None = None
    within: Callable[[NodeContext], Interval] | None = None
    omit: float = 0.0
    many: bool = False


@dataclass(frozen=True)
class ConstantInput:
    """An input that is always a constant: axes, shapes, pads, indices, conditions.

    value   the constant; None where earlier choices make it meaningless, so that the input is omitted
    omit    probability of omission, if it is not the last input
    """

    value: Callable[[NodeContext], Constant | None]
    omit: float = 0.0


InputSpec: TypeAlias = DataInput | ConstantInput
OutputRanges: TypeAlias = Callable[[NodeContext], Interval | tuple[Interval, ...]]
TorchForm: TypeAlias = str | Callable[[NodeContext, Sequence[str]], str | None]


def same_as_primary(context: NodeContext) -> tuple[TensorType, ...]:
    """The shape function of operators whose output has the primary input's type."""
    return (context.x,)


def primary_shape(context: NodeContext) -> Shape:
    """The primary input's shape."""
    return context.shape


#: Stands for the primary input: the first one chosen, whose rank, type and values the operator itself states.
PRIMARY_INPUT = DataInput(primary_shape)


@dataclass(frozen=True, eq=False)
class OperatorSpec:
    """The valid nodes of one operator, from one opset on.

    name, since   as in the ONNX operator reference, https://onnx.ai/onnx/operators/
    infer     the shape function: output types from input types, constants and attributes; it must not
              use `NodeContext.plan`, which is absent for graphs that were read
    values    bounds on the outputs' elements from those on the inputs'; one interval holds for all outputs
    input_specs  the inputs, in ONNX's order
    degrees   the in-degree set: how many inputs a node may have; () for exactly the input specs
    primary   index of the input chosen first; -1 if no input carries data
    ranks, dtypes, within, takes   conditions on the primary input: rank, element type, values, and any
              further condition on its static shape; `takes` needs `draw_shape`, which makes such a shape
    captured  how many of the first input specs the node's bodies capture (`NodeContext.edges`)
    empty, dynamic   whether the primary input may have no elements, or data-dependent lengths
    attribute_specs  the attributes, in the order in which they are drawn
    plan      chooses what several attributes and inputs must agree on, and `NodeContext.outputs`
    data_dependent  whether the outputs' shapes depend on the data
    expand    of a pattern (several operators): adds its nodes, returns the outputs' edges
    torch     the torch equivalent: an expression with {0}, {1} … for the inputs, or a function of the
              context and the inputs' names; None, for the operator or one node, if torch lacks it
    """

    name: str
    since: int
    infer: Callable[[NodeContext], tuple[TensorType, ...]] = same_as_primary
    values: OutputRanges = lambda context: context.range(0)
    input_specs: tuple[InputSpec, ...] = (PRIMARY_INPUT,)
    degrees: tuple[int, ...] = ()
    primary: int = 0
    ranks: Sequence[int] = ANY_RANK
    dtypes: tuple[str, ...] = FLOATS
    within: Callable[[TensorType], Interval] = moderate_range
    takes: Callable[[tuple[int, ...]], bool] | None = None
    draw_shape: Callable[[Rng, GraphLimits], tuple[int, ...]] | None = None
    empty: bool = False
    dynamic: bool = False
    attribute_specs: tuple[AttributeSpec, ...] = ()
    plan: Callable[[NodeContext], Any] | None = None
    data_dependent: bool = False
    captured: int = 0
    expand: Callable[[Builder, NodeContext], tuple[int, ...]] | None = None
    torch: TorchForm | None = None
    domain: str = ""
    defaults: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "defaults", {item.name: item.default for item in self.attribute_specs})
        if not self.degrees:
            object.__setattr__(self, "degrees", (len(self.input_specs),))

    @cached_property
    def url(self) -> str:
        """The operator's page in the ONNX operator reference."""
        return f"https://onnx.ai/onnx/operators/onnx__{self.name}.html"

    def input_spec(self, position: int) -> InputSpec:
        """The specification of an input; the last one stands for all further inputs."""
        return self.input_specs[min(position, len(self.input_specs) - 1)]

    def intervals(self, context: NodeContext, count: int) -> tuple[Interval, ...]:
        """Bounds on each of `count` outputs."""
        found = self.values(context)
        return (found,) * count if isinstance(found, Interval) else found


def int64(*values: int) -> Constant:
    """A constant vector of int64."""
    return Constant("int64", np.array(values, np.int64))
