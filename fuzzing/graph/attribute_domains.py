"""The values that attributes may have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from fuzzing.graph.ir import Attribute
from fuzzing.graph.node_context import NodeContext

Bound: TypeAlias = int | Callable[[NodeContext], int]
Bounds: TypeAlias = Callable[[NodeContext], Sequence[tuple[int, int]]]


def _bound(bound: Bound, context: NodeContext) -> int:
    return bound if isinstance(bound, int) else bound(context)


class Choice:
    """One of a few values."""

    def __init__(self, *values: Any) -> None:
        self._values = values

    def draw(self, context: NodeContext) -> Attribute:
        """One of them, all alike likely."""
        chosen: Attribute = context.rng.choice(self._values)
        return chosen

    def contains(self, value: Attribute, context: NodeContext) -> bool:
        """Whether it is among them."""
        return value in self._values


@dataclass(frozen=True)
class IntRange:
    """A whole number from `low` to `high`, both included; either may depend on what is chosen before."""

    low: Bound
    high: Bound

    def draw(self, context: NodeContext) -> Attribute:
        """One of them, all alike likely."""
        return context.rng.between(_bound(self.low, context), _bound(self.high, context))

    def contains(self, value: Attribute, context: NodeContext) -> bool:
        """Whether it lies between them."""
        return isinstance(value, int) and _bound(self.low, context) <= value <= _bound(self.high, context)


@dataclass(frozen=True)
class Axis:
    """An axis of the primary input, now and then counted from the end.

    end  how many positions behind the last axis count too (1 for Flatten, whose axis may be the rank)
    """

    end: int = 0
    negative: float = 0.1  # frontends normalise negative axes by code of their own, which deserves tests

    def draw(self, context: NodeContext) -> Attribute:
        """One of them; of a scalar 0, as the ONNX operator reference has it."""
        axis = context.rng.below(context.rank + self.end) if context.rank + self.end else 0
        if axis < context.rank and context.rng.chance(self.negative):
            return axis - context.rank
        return axis

    def contains(self, value: Attribute, context: NodeContext) -> bool:
        """Whether it is one."""
        return isinstance(value, int) and -context.rank <= value < max(context.rank, 1) + self.end


class Permutation:
    """An order of the primary input's axes."""

    def draw(self, context: NodeContext) -> Attribute:
        """One of them."""
        return tuple(context.rng.permutation(context.rank))

    def contains(self, value: Attribute, context: NodeContext) -> bool:
        """Whether it names each axis once."""
        return isinstance(value, tuple) and sorted(value) == list(range(context.rank))


@dataclass(frozen=True)
class IntTuple:
    """Several whole numbers, each between bounds of its own."""

    bounds: Bounds

    def draw(self, context: NodeContext) -> Attribute:
        """One tuple of them."""
        between = context.rng.between
        return tuple([between(low, high) for low, high in self.bounds(context)])

    def contains(self, value: Attribute, context: NodeContext) -> bool:
        """Whether there are as many as bounds, each within its own."""
        bounds = self.bounds(context)
        if not isinstance(value, tuple) or len(value) != len(bounds):
            return False
        pairs = zip(value, bounds, strict=True)
        return all(isinstance(x, int) and low <= x <= high for x, (low, high) in pairs)


@dataclass(frozen=True)
class Computed:
    """A value that follows from the plan; any value passes that the function would accept."""

    compute: Callable[[NodeContext], Attribute]
    accept: Callable[[Attribute, NodeContext], bool] = lambda value, context: True

    def draw(self, context: NodeContext) -> Attribute:
        """The value."""
        return self.compute(context)

    def contains(self, value: Attribute, context: NodeContext) -> bool:
        """Whether the function accepts it."""
        return self.accept(value, context)
