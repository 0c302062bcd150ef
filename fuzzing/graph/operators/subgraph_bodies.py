"""Bodies for If, Loop and Scan: a few operators that keep a shape, with bounds on the results."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from fuzzing.graph.intervals import MODERATE_RANGES, UNIT, Interval, add, magnitude, multiply, scale, subtract
from fuzzing.graph.ir import Builder
from fuzzing.rng import Rng

#: How many operators a body has for each of its outputs, at most.
_MOST = 3


class Value(NamedTuple):
    """An edge of a body, and bounds on its elements."""

    edge: int
    range: Interval


#: Operators that keep a shape, since before opset 13, with the bounds on what they give.
_ONE: dict[str, Callable[[Interval], Interval]] = {
    "Tanh": lambda a: Interval(math.tanh(a.low), math.tanh(a.high)),
    "Sigmoid": lambda a: UNIT,
    "Relu": lambda a: Interval(max(a.low, 0.0), max(a.high, 0.0)),
    "Neg": lambda a: scale(a, -1.0),
    "Abs": magnitude,
}
_TWO: dict[str, Callable[[Interval, Interval], Interval]] = {
    "Add": add,
    "Sub": subtract,
    "Mul": multiply,
    "Max": lambda a, b: Interval(max(a.low, b.low), max(a.high, b.high)),
    "Min": lambda a, b: Interval(min(a.low, b.low), min(a.high, b.high)),
}
_NAMES = (*_ONE, *_TWO)
#: Those whose results are bounded whatever they take: what is carried from step to step ends in one.
_BOUNDED = ("Tanh", "Sigmoid")


def build_chain(rng: Rng, builder: Builder, start: Value, others: Sequence[Value]) -> Value:
    """One to three operators on `start` and the others, all of one type."""
    value = start
    for _ in range(rng.between(1, _MOST)):
        value = _step(builder, rng.choice(_NAMES), value, rng.choice(others) if others else start)
    return value


def build_bounded_chain(rng: Rng, builder: Builder, start: Value, others: Sequence[Value]) -> Value:
    """As `build_chain`, with a result in [-1, 1]."""
    return _step(builder, rng.choice(_BOUNDED), build_chain(rng, builder, start, others), start)


def _step(builder: Builder, name: str, value: Value, other: Value) -> Value:
    """Applies an operator; another one if its result could leave the moderate range."""
    type_ = builder.types[value.edge]
    if name in _TWO:
        result = _TWO[name](value.range, other.range)
        if MODERATE_RANGES[type_.dtype].contains(result):
            return Value(builder.node(name, (value.edge, other.edge), (type_,))[0], result)
        name = "Tanh"
    return Value(builder.node(name, (value.edge,), (type_,))[0], _ONE[name](value.range))
