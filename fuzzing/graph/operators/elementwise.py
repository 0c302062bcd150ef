"""Functions of one element: rounding, signs, roots, exponentials, trigonometry."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from fuzzing.graph.intervals import WHOLE, Interval, magnitude, whole, within
from fuzzing.graph.operator import Operator, Setting, Torch
from fuzzing.graph.operators import register
from fuzzing.graph.rounding import exponents, limited, loosened, rounded
from fuzzing.graph.site import Site
from fuzzing.graph.types import FLOATS, NUMBERS, SIGNED, TensorType

Real: TypeAlias = Callable[[float], float]
#: How bounds found in exact arithmetic are moved outwards: see `fuzzing.graph.rounding`.
Off: TypeAlias = Callable[[Interval, str], Interval]

#: The floats of old forms, from before bfloat16 came to ONNX.
PLAIN = ("float32", "float64", "float16")

#: The forms of an operator that took bfloat16 in opset 22 only.
LATE = ((1, PLAIN), (22, FLOATS))


def pointwise(
    name: str,
    values: Callable[[Site], Interval],
    torch: Torch | None,
    *,
    forms: tuple[tuple[int, tuple[str, ...]], ...] = ((13, FLOATS),),
    within: Callable[[TensorType], Interval] = whole,
    settings: tuple[Setting, ...] = (),
) -> None:
    """Registers an operator that maps each element by itself, in each of its forms: since when, for what."""
    for since, dtypes in forms:
        register(
            Operator(name, since, values=values, within=within, dtypes=dtypes, empty=True, dynamic=True,
                     settings=settings, torch=torch)
        )  # fmt: skip


#: For a function that is computed without any error.
exact: Off = lambda found, dtype: found  # noqa: E731


def rising(function: Real, off: Off = rounded) -> Callable[[Site], Interval]:
    """Bounds of a function that never falls."""

    def values(site: Site) -> Interval:
        low, high = site.range(0)
        return off(Interval(function(low), function(high)), site.dtype)

    return values


def falling(function: Real, off: Off = rounded) -> Callable[[Site], Interval]:
    """Bounds of a function that never rises."""

    def values(site: Site) -> Interval:
        low, high = site.range(0)
        return off(Interval(function(high), function(low)), site.dtype)

    return values


def dipping(function: Real, at: float, off: Off = rounded) -> Callable[[Site], Interval]:
    """Bounds of a function that falls up to its least value, which it has at `at`, and rises from there."""

    def values(site: Site) -> Interval:
        return off(valley(function, at, site.range(0)), site.dtype)

    return values


def valley(function: Real, at: float, over: Interval) -> Interval:
    """The values of such a function over an interval."""
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
    """Whether an angle, or one that is whole turns from it, lies in an interval."""
    turn = 2 * math.pi
    return math.ceil((angles.low - angle) / turn) <= math.floor((angles.high - angle) / turn)


def _cosines(angles: Interval) -> Interval:
    return sines(Interval(angles.low + math.pi / 2, angles.high + math.pi / 2))


def _mirrored(type_: TensorType) -> Interval:
    """What may be negated: the least number of a signed integer type may not."""
    low, high = WHOLE[type_.dtype]
    return Interval(max(low, -high), high)


def _sign(x: float) -> float:
    return (x > 0) - (x < 0)


#: From a sine or cosine of 1e3 on, compilers differ by right: the last bit of a float32 is worth 6e-5 there.
_ANGLES = limited(-1e3, 1e3, 8.0)

#: The logarithm's and the reciprocal's: as near to zero as keeps their results small and their errors too.
_POSITIVE = within(1e-2, math.inf)

#: As near to ±1 as functions that end or grow without bound there are taken.
_INNER = within(-0.99, 0.99)

pointwise(
    "Abs", lambda site: magnitude(site.range(0)), "torch.abs({0})", within=_mirrored, forms=((13, NUMBERS),)
)
pointwise(
    "Neg", falling(lambda x: -x, exact), "torch.neg({0})", within=_mirrored, forms=((13, FLOATS + SIGNED),)
)
pointwise("Sign", rising(_sign, exact), "torch.sign({0})", forms=((13, NUMBERS),))
pointwise("Floor", rising(lambda x: float(math.floor(x)), exact), "torch.floor({0})")
pointwise("Ceil", rising(lambda x: float(math.ceil(x)), exact), "torch.ceil({0})")
# Halves go to the even neighbour, as in Python and torch.
pointwise("Round", rising(lambda x: float(round(x)), exact), "torch.round({0})", forms=LATE)
pointwise("Reciprocal", falling(lambda x: 1 / x), "torch.reciprocal({0})", within=_POSITIVE)
pointwise("Sqrt", rising(math.sqrt), "torch.sqrt({0})", within=within(0.0, math.inf))
pointwise("Exp", rising(math.exp), "torch.exp({0})", within=exponents)
pointwise("Log", rising(math.log, loosened), "torch.log({0})", within=_POSITIVE)
pointwise("Erf", rising(math.erf, loosened), "torch.erf({0})")
pointwise(
    "Sin",
    lambda site: loosened(sines(site.range(0)), site.dtype),
    "torch.sin({0})",
    forms=LATE,
    within=_ANGLES,
)
pointwise(
    "Cos",
    lambda site: loosened(_cosines(site.range(0)), site.dtype),
    "torch.cos({0})",
    forms=LATE,
    within=_ANGLES,
)
pointwise("Tan", rising(math.tan, loosened), "torch.tan({0})", forms=LATE, within=within(-1.4, 1.4))
pointwise("Asin", rising(math.asin), "torch.asin({0})", forms=LATE, within=_INNER)
pointwise("Acos", falling(math.acos), "torch.acos({0})", forms=LATE, within=_INNER)
pointwise("Atan", rising(math.atan), "torch.atan({0})", forms=LATE)
pointwise("Sinh", rising(math.sinh, loosened), "torch.sinh({0})", forms=LATE, within=exponents)
pointwise("Cosh", dipping(math.cosh, 0.0), "torch.cosh({0})", forms=LATE, within=exponents)
pointwise("Tanh", rising(math.tanh, loosened), "torch.tanh({0})")
# A compiler may expand these by their definitions, log(x + sqrt(x*x ± 1)): the square must fit.
pointwise(
    "Asinh", rising(math.asinh, loosened), "torch.asinh({0})", forms=LATE, within=limited(-1e3, 1e3, 64.0)
)
pointwise(
    "Acosh", rising(math.acosh, loosened), "torch.acosh({0})", forms=LATE, within=limited(1.01, 1e3, 64.0)
)
pointwise("Atanh", rising(math.atanh, loosened), "torch.atanh({0})", forms=LATE, within=_INNER)
