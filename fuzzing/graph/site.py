"""The place of one node: what its specification's functions are given, when solving and when reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from fuzzing.draws import Draws
from fuzzing.graph.intervals import Interval
from fuzzing.graph.ir import Attribute, Body, Constant, Node
from fuzzing.graph.types import TensorType

if TYPE_CHECKING:
    from fuzzing.graph.operator import Operator


@dataclass(frozen=True)
class Limits:
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


class Typed(Protocol):
    """What the place of a node is read from: a graph, or one whose types are being found."""

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
        """The initialisers, by edge."""
        ...


class Site:
    """A node in the making, or one that is there.

    operator    its specification
    degree      how many inputs it has, counted to the last one given
    outputs     how many outputs are asked for
    types, constants, ranges   of each input, as far as they are chosen; None for one left out, for one that
                is no constant, for one of unknown values
    edges       the inputs themselves, where there is a graph
    attributes  those given
    plan        what `Operator.plan` chose, for the drawing functions alone
    x, shape, rank, dtype      the lead input's type, taken apart; x is the empty float32 if there is no lead
    draws, limits, opset       where choices come from, and their bounds
    """

    __slots__ = (
        "attributes", "constants", "degree", "draws", "dtype", "edges", "limits", "operator", "opset",
        "outputs", "plan", "ranges", "rank", "shape", "types", "x",
    )  # fmt: skip

    def __init__(self, operator: Operator, opset: int, limits: Limits, draws: Draws, degree: int) -> None:
        self.operator = operator
        self.opset = opset
        self.limits = limits
        self.draws = draws
        self.degree = degree
        self.outputs = 1
        self.types: list[TensorType | None] = [None] * degree
        self.constants: list[Constant | None] = [None] * degree
        self.ranges: list[Interval | None] = [None] * degree
        self.edges: list[int | None] = [None] * degree
        self.attributes: dict[str, Attribute] = {}
        self.plan: Any = None

    @classmethod
    def of(cls, operator: Operator, graph: Typed, node: Node) -> Site:
        """The place of a node that is there."""
        bodies = [value for value in node.attributes.values() if isinstance(value, Body)]
        captures = bodies[0].captures if operator.captured and bodies else ()
        edges = (*captures[: operator.captured], *node.inputs)
        site = cls(operator, graph.opset, Limits(), Draws(0), len(edges))
        site.outputs = len(node.outputs)
        site.attributes = dict(node.attributes)
        for position, edge in enumerate(edges):
            if edge is not None:
                site.edges[position] = edge
                site.types[position] = graph.types[edge]
                site.constants[position] = graph.constants.get(edge)
        if 0 <= operator.lead < len(edges):
            site.led()
        return site

    def led(self) -> None:
        """Takes the lead input's type apart, once it is there."""
        lead = self.types[self.operator.lead]
        if lead is not None:
            self.x = lead
            self.dtype = lead.dtype
            self.shape = lead.shape or ()
            self.rank = len(self.shape)

    def given(self, position: int) -> bool:
        """Whether the input at this position is there."""
        return position < self.degree and self.types[position] is not None

    def type(self, position: int) -> TensorType:
        """The type of an input that is there."""
        found = self.types[position]
        if found is None:
            raise LookupError(f"{self.operator.name} has no input {position}")
        return found

    def dims(self, position: int) -> tuple[int, ...]:
        """The lengths of an input that is there and static."""
        return self.type(position).lengths

    def range(self, position: int) -> Interval:
        """The bounds on an input's elements; while solving, every input has them."""
        found = self.ranges[position]
        if found is None:
            raise LookupError(f"nothing is known of the values of {self.operator.name}'s input {position}")
        return found

    def numbers(self, position: int) -> list[int]:
        """The elements of a constant input of whole numbers, flat: axes, shapes, pads."""
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
        """An attribute that is an axis of the lead input, counted from the front."""
        axis: int = self.get(name)
        return axis + self.rank if axis < 0 else axis


def int64(*values: int) -> Constant:
    """A vector of whole numbers: axes, a shape."""
    return Constant("int64", np.array(values, np.int64))
