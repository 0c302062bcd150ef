"""Bounds for inexact arithmetic: on results, and on inputs so that results fit their type.

A bound from exact arithmetic is widened by the error of a correct implementation: a few units in the last
place, more where a kernel is fused, regrouped or approximated. Integers are exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

from fuzzing.graph.intervals import FULL_RANGES, Interval, intersect
from fuzzing.graph.types import TensorType

#: How far a result may be off, relatively: four units of the last place for the short types (IEEE 754:
#: 11 bits; bfloat16: 8), and for the long ones what approximations of functions on accelerators are off.
STEP = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 1e-5, "float64": 1e-5}

#: Below this a number may be flushed to zero: above the smallest normal one (2**-14, 2**-126).
_TINY = {"float16": 1e-4, "bfloat16": 1e-37, "float32": 1e-37, "float64": 1e-37}

#: What bounds grow by when four steps of the coarsest type are put on them, and a little more.
_ROUNDINGS = 1.1

#: What the exponential takes: e to it, and the sum of a few such, is neither zero nor more than WHOLE.
_EXPONENTS = {"float16": Interval(-8.0, 8.0)}
_OTHER_EXPONENTS = Interval(-80.0, 80.0)


def after_rounding(found: Interval, dtype: str, steps: float = 1.0) -> Interval:
    """For functions that keep relative accuracy: signs stay, and zero stays zero."""
    step = STEP.get(dtype)
    if step is None:
        return found
    low, high = found
    low -= abs(low) * step * steps
    high += abs(high) * step * steps
    tiny = _TINY[dtype]
    return Interval(0.0 if 0 < low < tiny else low, 0.0 if -tiny < high < 0 else high)


def product_after_rounding(found: Interval, dtype: str, count: int) -> Interval:
    """For products of this many factors, whose roundings partly cancel."""
    return after_rounding(found, dtype, min(2 + count / 64, 16))


def widened(found: Interval, dtype: str, scale: float = 1.0, floor: float = -math.inf) -> Interval:
    """For functions that contain a difference: off by a share of `scale` too, but never below `floor`."""
    step = STEP.get(dtype)
    if step is None:
        return found
    low, high = after_rounding(found, dtype)
    return Interval(max(low - step * scale, floor), high + step * scale)


def truncated(found: Interval, dtype: str) -> Interval:
    """For fractions, which an integer type truncates or rounds."""
    return found if dtype in STEP else Interval(math.floor(found.low), math.ceil(found.high))


def share(parts: float) -> Callable[[TensorType], Interval]:
    """The domain of elements of which `parts` are added, roundings included."""
    return lambda type_: _share(type_.dtype, parts)


def per_element(type_: TensorType) -> Interval:
    """The domain of elements that are summed."""
    return _share(type_.dtype, max(type_.elements, 1))


def root_per_element(type_: TensorType) -> Interval:
    """The domain of elements whose squares are summed."""
    return _rooted(per_element(type_), 2, type_.dtype)


def factor_per_element(type_: TensorType) -> Interval:
    """The domain of elements that are multiplied."""
    return _rooted(_share(type_.dtype, 2), max(type_.elements, 1), type_.dtype)


def exponents(type_: TensorType) -> Interval:
    """The domain of the exponential, and of functions the ONNX operator reference defines by it."""
    return _EXPONENTS.get(type_.dtype, _OTHER_EXPONENTS)


def bounded_domain(low: float, high: float, short: float) -> Callable[[TensorType], Interval]:
    """A domain; of magnitude at most `short` for types with few bits, whose numbers are far apart."""
    wide, narrow = Interval(low, high), intersect(Interval(low, high), Interval(-short, short))
    return lambda type_: narrow if type_.dtype in ("float16", "bfloat16") else wide


@cache
def _share(dtype: str, parts: float) -> Interval:
    low, high = FULL_RANGES[dtype]
    if dtype in STEP:
        parts *= _ROUNDINGS
        return Interval(low / parts, high / parts)
    largest = math.floor(high / parts)
    return Interval(max(low, -largest), largest)  # as far down as up, for magnitudes to fit too


@cache
def _rooted(bounds: Interval, power: int, dtype: str) -> Interval:
    largest = bounds.high ** (1 / power)
    if dtype not in STEP:
        largest = math.floor(largest + 1e-9)
        while largest**power > bounds.high:
            largest -= 1
    return Interval(max(bounds.low, -largest), largest)
