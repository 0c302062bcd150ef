"""Sum, Mean, Max and Min of up to five tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fuzzing.graph.intervals import FULL_RANGES, Interval, full_range
from fuzzing.graph.operator_spec import NodeContext
from fuzzing.graph.operators.arithmetic import ranges, register_broadcasting, total
from fuzzing.graph.rounding import after_rounding, share
from fuzzing.graph.types import FLOATS, NUMBERS


def _fold(function: str, names: Sequence[str]) -> str:
    found = names[0]
    for name in names[1:]:
        found = f"torch.{function}({found}, {name})"
    return found


def _folded(function: str) -> Callable[[NodeContext, Sequence[str]], str]:
    return lambda context, names: _fold(function, names)


def _anything(context: NodeContext) -> Interval:
    return FULL_RANGES[context.dtype]


def _largest(context: NodeContext) -> Interval:
    found = ranges(context)
    return Interval(max(item.low for item in found), max(item.high for item in found))


def _smallest(context: NodeContext) -> Interval:
    found = ranges(context)
    return Interval(min(item.low for item in found), min(item.high for item in found))


def _mean(context: NodeContext) -> Interval:
    low, high = total(ranges(context), context.dtype)
    return after_rounding(Interval(low / context.degree, high / context.degree), context.dtype)


_FIFTH = share(5)
_VARIADIC = (1, 2, 3, 4, 5)

register_broadcasting(
    "Max", {13: NUMBERS}, _largest, _folded("maximum"), within=full_range, second=_anything, degrees=_VARIADIC
)
register_broadcasting(
    "Min",
    {13: NUMBERS},
    _smallest,
    _folded("minimum"),
    within=full_range,
    second=_anything,
    degrees=_VARIADIC,
)
register_broadcasting(
    "Sum",
    {13: FLOATS},
    lambda context: total(ranges(context), context.dtype),
    _folded("add"),
    within=_FIFTH,
    second=lambda context: _FIFTH(context.x),
    degrees=_VARIADIC,
)
register_broadcasting(
    "Mean",
    {13: FLOATS},
    _mean,
    lambda context, names: f"({_fold('add', names)}) / {context.degree}",
    within=_FIFTH,
    second=lambda context: _FIFTH(context.x),
    degrees=_VARIADIC,
)
