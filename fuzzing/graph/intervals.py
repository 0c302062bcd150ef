"""Bounds on the elements of an edge, propagated through the graph so that every value stays finite.

Every element is a number (no NaN) in [low, high]. `OperatorSpec.within` gives the intervals an operator
accepts, `OperatorSpec.values` those it produces; both are sound, not tight. Compilers regroup sums and
approximate functions, so bounds near the border of a domain are widened or kept away from it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from fuzzing.graph.types import TensorType
from fuzzing.rng import Rng


class Interval(NamedTuple):
    """The numbers in [low, high]."""

    low: float
    high: float

    @property
    def largest(self) -> float:
        """The largest magnitude in the interval."""
        return max(abs(self.low), abs(self.high))

    def contains(self, other: Interval) -> bool:
        """Whether all of `other` lies in the interval."""
        return self.low <= other.low and other.high <= self.high


UNIT = Interval(0.0, 1.0)
BOOLEAN = Interval(0, 1)

#: What an edge may carry at all. Floats: a tenth of the type's largest number or less, so that a sum in
#: another order stays finite. Integers: what the type holds, and float64 holds: up to 2**53.
FULL_RANGES: dict[str, Interval] = {
    "float16": Interval(-6e3, 6e3),
    "bfloat16": Interval(-1e37, 1e37),
    "float32": Interval(-1e37, 1e37),
    "float64": Interval(-1e37, 1e37),
    "int8": Interval(-128, 127),
    "int16": Interval(-(1 << 15), (1 << 15) - 1),
    "int32": Interval(-(1 << 31), (1 << 31) - 1),
    "int64": Interval(-(1 << 53), 1 << 53),
    "uint8": Interval(0, 255),
    "uint16": Interval(0, (1 << 16) - 1),
    "uint32": Interval(0, (1 << 32) - 1),
    "uint64": Interval(0, 1 << 53),
    "bool": BOOLEAN,
}

#: What an operator takes that multiplies two elements, or adds a few: squares stay within `FULL_RANGES`.
MODERATE_RANGES: dict[str, Interval] = {
    "float16": Interval(-64, 64),
    "bfloat16": Interval(-1e6, 1e6),
    "float32": Interval(-1e6, 1e6),
    "float64": Interval(-1e6, 1e6),
    "int8": Interval(-11, 11),
    "int16": Interval(-181, 181),
    "int32": Interval(-46340, 46340),
    "int64": Interval(-1e6, 1e6),
    "uint8": Interval(0, 15),
    "uint16": Interval(0, 255),
    "uint32": Interval(0, 65535),
    "uint64": Interval(0, 1e6),
    "bool": BOOLEAN,
}

#: Where fresh floats come from: Isra's [-1, 1) mostly (seed paper, released `g.py`), and for the sake of
#: operators with a domain also numbers of one sign.
_FLOATS = (Interval(-1, 1),) * 5 + (UNIT, Interval(0.5, 2), Interval(-2, -0.5))
_INTEGERS = (Interval(-8, 8), Interval(0, 8), Interval(1, 4))


def full_range(type_: TensorType) -> Interval:
    """All values of the type: for operators that move, compare or bound elements."""
    return FULL_RANGES[type_.dtype]


def moderate_range(type_: TensorType) -> Interval:
    """The domain of plain arithmetic."""
    return MODERATE_RANGES[type_.dtype]


def within(low: float, high: float) -> _Fixed:
    """A domain independent of the type, cut to the type's range."""
    return _Fixed(low, high)


class _Fixed:
    __slots__ = ("_cut", "_given")

    def __init__(self, low: float, high: float) -> None:
        self._given = Interval(low, high)
        self._cut: dict[str, Interval] = {}

    def __call__(self, type_: TensorType) -> Interval:
        found = self._cut.get(type_.dtype)
        if found is None:
            found = self._cut[type_.dtype] = intersect(self._given, FULL_RANGES[type_.dtype])
        return found


def intersect(given: Interval, bounds: Interval) -> Interval:
    """The part of `given` inside `bounds`."""
    return Interval(max(given.low, bounds.low), min(given.high, bounds.high))


def hull(intervals: Iterable[Interval]) -> Interval:
    """The smallest interval that contains all of them."""
    lows, highs = zip(*intervals, strict=True)
    return Interval(min(lows), max(highs))


def widen(given: Interval, share: float = 1e-4) -> Interval:
    """Widens both sides by the largest magnitude times `share`, for arithmetic that rounds."""
    slack = given.largest * share
    return Interval(given.low - slack, given.high + slack)


def add(a: Interval, b: Interval) -> Interval:
    """A + b."""
    return Interval(a.low + b.low, a.high + b.high)


def subtract(a: Interval, b: Interval) -> Interval:
    """A - b."""
    return Interval(a.low - b.high, a.high - b.low)


def multiply(a: Interval, b: Interval) -> Interval:
    """A · b."""
    corners = (a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high)
    return Interval(min(corners), max(corners))


def scale(a: Interval, factor: float) -> Interval:
    """A · factor."""
    one, other = a.low * factor, a.high * factor
    return Interval(one, other) if one <= other else Interval(other, one)


def magnitude(a: Interval) -> Interval:
    """|a|."""
    least = 0.0 if a.low <= 0 <= a.high else min(abs(a.low), abs(a.high))
    return Interval(least, a.largest)


def draw_interval(rng: Rng, allowed: Interval, dtype: str) -> Interval:
    """The range of a new placeholder's elements: usual numbers, as far as `allowed` contains them."""
    if dtype == "bool":
        return BOOLEAN
    floats = dtype.startswith(("float", "bfloat"))
    usual = intersect(rng.choice(_FLOATS if floats else _INTEGERS), allowed)
    if usual.low < usual.high or (usual.low == usual.high and not floats):
        return usual
    # None of the usual ones is allowed: begin at the border that lies nearer to zero.
    low = max(allowed.low, min(allowed.high, 0.0) - 2.0)
    high = min(allowed.high, low + 2.0)
    return Interval(low, high) if floats else Interval(math.ceil(low), math.floor(high))
