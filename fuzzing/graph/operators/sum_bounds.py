"""Bounds for sums of products: on the factors and on the sums."""

from __future__ import annotations

import math

from fuzzing.graph.intervals import FULL_RANGES, MODERATE_RANGES, Interval, multiply, widen
from fuzzing.graph.operator_spec import NodeContext
from fuzzing.graph.types import FLOATS, TensorType

#: The share of what a type carries that a sum of products may use; the rest is for what is added to it.
_SHARE = 0.4
_FIRST = dict.fromkeys(("float32", "float64", "bfloat16"), Interval(-1e15, 1e15))


def max_output_elements(context: NodeContext) -> int:
    """The most elements an output may have."""
    return max(context.limits.max_elements, context.x.elements)


def factor(context: NodeContext, terms: int) -> Interval:
    """The domain of a further factor, so that `terms` products with the inputs so far sum up."""
    largest = 1.0
    for range_ in context.ranges:
        if range_ is not None:
            largest *= max(1.0, range_.largest)
    modest = MODERATE_RANGES[context.dtype]
    most = min(_SHARE * FULL_RANGES[context.dtype].high / (max(terms, 1) * largest), modest.high)
    if context.dtype not in FLOATS:
        most = float(int(most))
    return Interval(-most if modest.low < 0 else 0.0, most)


def addend(context: NodeContext) -> Interval:
    """The domain of a summand added to a sum whose factors keep to `factor`."""
    modest, share = MODERATE_RANGES[context.dtype], _SHARE * FULL_RANGES[context.dtype].high
    most = min(modest.high, share if context.dtype in FLOATS else int(share))
    return Interval(-most if modest.low < 0 else 0.0, most)


def multiplied(type_: TensorType) -> Interval:
    """The domain of a first factor: above moderate for wide floats, so that products can follow
    one another; second factors of any moderate size still fit.
    """
    return _FIRST.get(type_.dtype, MODERATE_RANGES[type_.dtype])


def summands(type_: TensorType) -> Interval:
    """The domain of elements that are all summed."""
    most = _SHARE * FULL_RANGES[type_.dtype].high / max(1, type_.elements if type_.static else 1)
    if type_.dtype not in FLOATS:
        most = float(int(most))
    return Interval(-most if FULL_RANGES[type_.dtype].low < 0 else 0.0, most)


def squared(type_: TensorType) -> Interval:
    """The domain of floats whose squares are all summed."""
    most = summands(type_).high
    most = min(most, math.sqrt(most))
    return Interval(-most, most)


def total(dtype: str, terms: int, *factors: Interval, fewer: bool = False) -> Interval:
    """Bounds on a sum of this many products, or, with `fewer`, on sums that miss some of them."""
    product = factors[0]
    for other in factors[1:]:
        product = multiply(product, other)
    low, high = terms * product.low, terms * product.high
    if fewer or terms == 0:
        low, high = min(low, 0.0), max(high, 0.0)
    return widen(Interval(low, high)) if dtype in FLOATS else Interval(low, high)
