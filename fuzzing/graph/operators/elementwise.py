"""Unary functions: rounding, signs, roots, exponentials, trigonometry."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from fuzzing.graph.intervals import FULL_RANGES, Interval, full_range, magnitude, within
from fuzzing.graph.operator_spec import AttributeSpec, NodeContext, OperatorSpec, TorchForm
from fuzzing.graph.operators import register
from fuzzing.graph.rounding import after_rounding, bounded_domain, exponents, widened
from fuzzing.graph.types import FLOATS, NUMBERS, SIGNED, TensorType

Real: TypeAlias = Callable[[float], float]
#: How bounds found in exact arithmetic are moved outwards: see `fuzzing.graph.rounding`.
Off: TypeAlias = Callable[[Interval, str], Interval]

#: The floats of old forms, from before bfloat16 came to ONNX.
PLAIN = ("float32", "float64", "float16")

#: The forms of an operator that took bfloat16 in opset 22 only.
LATE = ((1, PLAIN), (22, FLOATS))


def register_pointwise(
    name: str,
    values: Callable[[NodeContext], Interval],
    torch: TorchForm | None,
    *,
    forms: tuple[tuple[int, tuple[str, ...]], ...] = ((13, FLOATS),),
    within: Callable[[TensorType], Interval] = full_range,
    attribute_specs: tuple[AttributeSpec, ...] = (),
) -> None:
    """Registers an elementwise operator in each of its forms: since which opset, for which types."""
    for since, dtypes in forms:
        register(
            OperatorSpec(name, since, values=values, within=within, dtypes=dtypes, empty=True, dynamic=True,
                     attribute_specs=attribute_specs, torch=torch)
        )  # fmt: skip


#: For a function that is computed without any error.
exact: Off = lambda found, dtype: found  # noqa: E731


def increasing_bounds(function: Real, off: Off = after_rounding) -> Callable[[NodeContext], Interval]:
    """Bounds of a nondecreasing function."""

    def values(context: NodeContext) -> Interval:
        low, high = context.range(0)
        return off(Interval(function(low), function(high)), context.dtype)

    return values


def decreasing_bounds(function: Real, off: Off = after_rounding) -> Callable[[NodeContext], Interval]:
    """Bounds of a nonincreasing function."""

    def values(context: NodeContext) -> Interval:
        low, high = context.range(0)
        return off(Interval(function(high), function(low)), context.dtype)

    return values


def single_minimum_bounds(
    function: Real, at: float, off: Off = after_rounding
) -> Callable[[NodeContext], Interval]:
    """Bounds of a function with a single minimum, at `at`."""

    def values(context: NodeContext) -> Interval:
        return off(single_minimum_range(function, at, context.range(0)), context.dtype)

    return values


def single_minimum_range(function: Real, at: float, over: Interval) -> Interval:
    """The values of a function with a single minimum over an interval."""
    low, high = function(over.low), function(over.high)
    if over.high <= at:
        return Interval(high, low)
    return Interval(low if over.low >= at else function(at), max(low, high))


def sines(angles: Interval) -> Interval:
    """The values of the sine over an interval."""
    first, last = math.sin(angles.low), math.sin(angles.high)
    top = _meets(angles, math.pi / 2)
    bottom = _meets(angles, -math.pi / 2)
    return Interval(-1.0 if bottom else min(first, last), 1.0 if top else max(first, last))


def _meets(angles: Interval, angle: float) -> bool:
    turn = 2 * math.pi
    return math.ceil((angles.low - angle) / turn) <= math.floor((angles.high - angle) / turn)


def _cosines(angles: Interval) -> Interval:
    return sines(Interval(angles.low + math.pi / 2, angles.high + math.pi / 2))


def _mirrored(type_: TensorType) -> Interval:
    """What may be negated: not the least number of a signed integer type."""
    low, high = FULL_RANGES[type_.dtype]
    return Interval(max(low, -high), high)


def _sign(x: float) -> float:
    return (x > 0) - (x < 0)


#: From a sine or cosine of 1e3 on, compilers differ by right: the last bit of a float32 is worth 6e-5 there.
_ANGLES = bounded_domain(-1e3, 1e3, 8.0)

#: The logarithm's and the reciprocal's: as near to zero as keeps their results small and their errors too.
_POSITIVE = within(1e-2, math.inf)

#: As near to ±1 as functions that end or grow without bound there are taken.
_INNER = within(-0.99, 0.99)

register_pointwise(
    "Abs",
    lambda context: magnitude(context.range(0)),
    "torch.abs({0})",
    within=_mirrored,
    forms=((13, NUMBERS),),
)
register_pointwise(
    "Neg",
    decreasing_bounds(lambda x: -x, exact),
    "torch.neg({0})",
    within=_mirrored,
    forms=((13, FLOATS + SIGNED),),
)
register_pointwise("Sign", increasing_bounds(_sign, exact), "torch.sign({0})", forms=((13, NUMBERS),))
register_pointwise("Floor", increasing_bounds(lambda x: float(math.floor(x)), exact), "torch.floor({0})")
register_pointwise("Ceil", increasing_bounds(lambda x: float(math.ceil(x)), exact), "torch.ceil({0})")
# Halves go to the even neighbor, as in Python and torch.
register_pointwise(
    "Round", increasing_bounds(lambda x: float(round(x)), exact), "torch.round({0})", forms=LATE
)
register_pointwise(
    "Reciprocal", decreasing_bounds(lambda x: 1 / x), "torch.reciprocal({0})", within=_POSITIVE
)
register_pointwise("Sqrt", increasing_bounds(math.sqrt), "torch.sqrt({0})", within=within(0.0, math.inf))
register_pointwise("Exp", increasing_bounds(math.exp), "torch.exp({0})", within=exponents)
register_pointwise("Log", increasing_bounds(math.log, widened), "torch.log({0})", within=_POSITIVE)
register_pointwise("Erf", increasing_bounds(math.erf, widened), "torch.erf({0})")
register_pointwise(
    "Sin",
    lambda context: widened(sines(context.range(0)), context.dtype),
    "torch.sin({0})",
    forms=LATE,
    within=_ANGLES,
)
register_pointwise(
    "Cos",
    lambda context: widened(_cosines(context.range(0)), context.dtype),
    "torch.cos({0})",
    forms=LATE,
    within=_ANGLES,
)
register_pointwise(
    "Tan", increasing_bounds(math.tan, widened), "torch.tan({0})", forms=LATE, within=within(-1.4, 1.4)
)
register_pointwise("Asin", increasing_bounds(math.asin), "torch.asin({0})", forms=LATE, within=_INNER)
register_pointwise("Acos", decreasing_bounds(math.acos), "torch.acos({0})", forms=LATE, within=_INNER)
register_pointwise("Atan", increasing_bounds(math.atan), "torch.atan({0})", forms=LATE)
register_pointwise(
    "Sinh", increasing_bounds(math.sinh, widened), "torch.sinh({0})", forms=LATE, within=exponents
)
register_pointwise(
    "Cosh", single_minimum_bounds(math.cosh, 0.0), "torch.cosh({0})", forms=LATE, within=exponents
)
register_pointwise("Tanh", increasing_bounds(math.tanh, widened), "torch.tanh({0})")
# A compiler may expand these by their definitions, log(x + sqrt(x*x ± 1)): the square must fit.
register_pointwise(
    "Asinh",
    increasing_bounds(math.asinh, widened),
    "torch.asinh({0})",
    forms=LATE,
    within=bounded_domain(-1e3, 1e3, 64.0),
)
register_pointwise(
    "Acosh",
    increasing_bounds(math.acosh, widened),
    "torch.acosh({0})",
    forms=LATE,
    within=bounded_domain(1.01, 1e3, 64.0),
)
register_pointwise(
    "Atanh", increasing_bounds(math.atanh, widened), "torch.atanh({0})", forms=LATE, within=_INNER
)
