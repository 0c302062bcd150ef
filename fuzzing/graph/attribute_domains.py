"""Domains of attribute values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from fuzzing.graph.ir import Attribute
from fuzzing.graph.operator_spec import AttributeSpec, Domain, NodeContext

Bound: TypeAlias = int | Callable[[NodeContext], int]
Bounds: TypeAlias = Callable[[NodeContext], Sequence[tuple[int, int]]]


def _bound(bound: Bound, context: NodeContext) -> int:
    return bound if isinstance(bound, int) else bound(context)


class Choice:
    """One of a few values, all equally likely."""

    def __init__(self, *values: Any) -> None:
        self._values = values

    def draw(self, context: NodeContext) -> Attribute:
        """Draws a value."""
        chosen: Attribute = context.rng.choice(self._values)
        return chosen

    def contains(self, value: Attribute, context: NodeContext) -> bool:
        """Whether the value is one of the choices."""
        return value in self._values


@dataclass(frozen=True)
class IntRange:
    """An integer in [low, high]; either bound may depend on what is chosen before."""

    low: Bound
    high: Bound

    def draw(self, context: NodeContext) -> Attribute:
        """Draws an integer, uniformly."""
        return context.rng.between(_bound(self.low, context), _bound(self.high, context))

    def contains(self, value: Attribute, context: NodeContext) -> bool:
        """Whether the value is an integer within the bounds."""
        return isinstance(value, int) and _bound(self.low, context) <= value <= _bound(self.high, context)


@dataclass(frozen=True)
class Axis:
    """An axis of the primary input, sometimes counted from the end.

    end  how many positions behind the last axis also count (1 for Flatten, whose axis may be the rank)
    """

    end: int = 0
    negative: float = 0.1  # frontends normalize negative axes by code of their own, which deserves tests

    def draw(self, context: NodeContext) -> Attribute:
        """Draws an axis; 0 for a scalar, as the ONNX operator reference has it."""
        axis = context.rng.below(context.rank + self.end) if context.rank + self.end else 0
        if axis < context.rank and context.rng.chance(self.negative):
            return axis - context.rank
        return axis

    def contains(self, value: Attribute, context: NodeContext) -> bool:
        """Whether the value is an axis of the primary input."""
        return isinstance(value, int) and -context.rank <= value < max(context.rank, 1) + self.end


class Permutation:
    """An order of the primary input's axes."""

    def draw(self, context: NodeContext) -> Attribute:
        """Draws a permutation."""
        return tuple(context.rng.permutation(context.rank))

    def contains(self, value: Attribute, context: NodeContext) -> bool:
        """Whether the value names each axis once."""
        return isinstance(value, tuple) and sorted(value) == list(range(context.rank))


@dataclass(frozen=True)
class IntTuple:
    """Several integers, each within bounds of its own."""

    bounds: Bounds

    def draw(self, context: NodeContext) -> Attribute:
        """Draws one tuple."""
        between = context.rng.between
        return tuple([between(low, high) for low, high in self.bounds(context)])

    def contains(self, value: Attribute, context: NodeContext) -> bool:
        """Whether the length fits and each item is within its bounds."""
        bounds = self.bounds(context)
        if not isinstance(value, tuple) or len(value) != len(bounds):
            return False
        pairs = zip(value, bounds, strict=True)
        return all(isinstance(x, int) and low <= x <= high for x, (low, high) in pairs)


@dataclass(frozen=True)
class Computed:
    """A value computed from the plan; `accepts` decides which values are valid."""

    compute: Callable[[NodeContext], Attribute]
    accept: Callable[[Attribute, NodeContext], bool] = lambda value, context: True

    def draw(self, context: NodeContext) -> Attribute:
        """The computed value."""
        return self.compute(context)

    def contains(self, value: Attribute, context: NodeContext) -> bool:
        """Whether the function accepts the value."""
        return self.accept(value, context)


def planned_attribute(name: str, default: Any = None, domain: Domain | None = None) -> AttributeSpec:
    """An attribute that `OperatorSpec.plan` sets together with what it must agree with, or omits.

    domain  its valid values in a graph that is read; None: anything
    """
    return AttributeSpec(
        name, domain or Computed(lambda context: context.attributes[name]), omit=1.0, default=default
    )
