"""The values that attributes may have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from fuzzing.graph.ir import Attribute
from fuzzing.graph.site import Site

Bound: TypeAlias = int | Callable[[Site], int]
Bounds: TypeAlias = Callable[[Site], Sequence[tuple[int, int]]]


def _bound(bound: Bound, site: Site) -> int:
    return bound if isinstance(bound, int) else bound(site)


class Choice:
    """One of a few values."""

    def __init__(self, *values: Any) -> None:
        self._values = values

    def draw(self, site: Site) -> Attribute:
        """One of them, all alike likely."""
        chosen: Attribute = site.draws.choice(self._values)
        return chosen

    def admits(self, value: Attribute, site: Site) -> bool:
        """Whether it is among them."""
        return value in self._values


@dataclass(frozen=True)
class Between:
    """A whole number from `low` to `high`, both included; either may depend on what is chosen before."""

    low: Bound
    high: Bound

    def draw(self, site: Site) -> Attribute:
        """One of them, all alike likely."""
        return site.draws.between(_bound(self.low, site), _bound(self.high, site))

    def admits(self, value: Attribute, site: Site) -> bool:
        """Whether it lies between them."""
        return isinstance(value, int) and _bound(self.low, site) <= value <= _bound(self.high, site)


@dataclass(frozen=True)
class Axis:
    """An axis of the lead input, now and then counted from the end.

    end  how many positions behind the last axis count too (1 for Flatten, whose axis may be the rank)
    """

    end: int = 0
    negative: float = 0.1  # frontends normalise negative axes by code of their own, which deserves tests

    def draw(self, site: Site) -> Attribute:
        """One of them; of a scalar 0, as the ONNX operator reference has it."""
        axis = site.draws.below(site.rank + self.end) if site.rank + self.end else 0
        if axis < site.rank and site.draws.chance(self.negative):
            return axis - site.rank
        return axis

    def admits(self, value: Attribute, site: Site) -> bool:
        """Whether it is one."""
        return isinstance(value, int) and -site.rank <= value < max(site.rank, 1) + self.end


class Permutation:
    """An order of the lead input's axes."""

    def draw(self, site: Site) -> Attribute:
        """One of them."""
        return tuple(site.draws.permutation(site.rank))

    def admits(self, value: Attribute, site: Site) -> bool:
        """Whether it names each axis once."""
        return isinstance(value, tuple) and sorted(value) == list(range(site.rank))


@dataclass(frozen=True)
class Each:
    """Several whole numbers, each between bounds of its own."""

    bounds: Bounds

    def draw(self, site: Site) -> Attribute:
        """One tuple of them."""
        between = site.draws.between
        return tuple([between(low, high) for low, high in self.bounds(site)])

    def admits(self, value: Attribute, site: Site) -> bool:
        """Whether there are as many as bounds, each within its own."""
        bounds = self.bounds(site)
        if not isinstance(value, tuple) or len(value) != len(bounds):
            return False
        pairs = zip(value, bounds, strict=True)
        return all(isinstance(x, int) and low <= x <= high for x, (low, high) in pairs)


@dataclass(frozen=True)
class Made:
    """A value that follows from the plan; any value passes that the function would accept."""

    make: Callable[[Site], Attribute]
    accept: Callable[[Attribute, Site], bool] = lambda value, site: True

    def draw(self, site: Site) -> Attribute:
        """The value."""
        return self.make(site)

    def admits(self, value: Attribute, site: Site) -> bool:
        """Whether the function accepts it."""
        return self.accept(value, site)
