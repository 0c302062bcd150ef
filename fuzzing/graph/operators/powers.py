"""Powers and remainders."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fuzzing.graph.attribute_domains import Choice, planned_attribute
from fuzzing.graph.intervals import Interval, full_range, hull, intersect, moderate_range
from fuzzing.graph.operator_spec import PRIMARY_INPUT, DataInput, NodeContext, OperatorSpec
from fuzzing.graph.operators import register
from fuzzing.graph.operators.arithmetic import (
    broadcast_type,
    draw_further_shape,
    one_signed_range,
    register_broadcasting,
)
from fuzzing.graph.rounding import after_rounding
from fuzzing.graph.types import FLOATS, INTEGERS, NUMBERS, TensorType


def _dividend(type_: TensorType) -> Interval:
    """Bounded relative to the modulus: compilers that divide and multiply back would keep no bit."""
    return (
        intersect(moderate_range(type_), Interval(-1e3, 1e3)) if type_.dtype in FLOATS else full_range(type_)
    )


def _plan_mod(context: NodeContext) -> None:
    """Floats require fmod=1; integers sometimes set it and mostly omit it."""
    if context.dtype in FLOATS or context.rng.chance(0.4):
        context.attributes["fmod"] = 1
    elif context.rng.chance(0.3):
        context.attributes["fmod"] = 0


def _modulus(context: NodeContext) -> Interval:
    return one_signed_range(context, 0.5 if context.dtype in FLOATS else 1, full_range(context.x).high)


def _remainder(context: NodeContext) -> Interval:
    """Has the sign of the dividend with fmod, else of the divisor; smaller than the divisor."""
    a, b = context.range(0), context.range(1)
    most = b.largest if context.dtype in FLOATS else b.largest - 1
    if context.get("fmod"):
        return Interval(max(min(a.low, 0), -most), min(max(a.high, 0), most))
    if b.low < 0:
        return Interval(-most, 0)
    return Interval(0, min(most, a.high) if a.low >= 0 else most)


def _remainder_text(context: NodeContext, names: Sequence[str]) -> str:
    return f"torch.{'fmod' if context.get('fmod') else 'remainder'}({names[0]}, {names[1]})"


def _power(context: NodeContext) -> tuple[str, Interval]:
    """The exponent's type and values: nonnegative integers for a base that may be negative or near zero."""
    base = context.range(0)
    if base.low >= _AWAY and context.dtype in FLOATS:
        farthest = max(base.largest, 1 / base.low, 2.0)
        reach = min(4.0, math.log(full_range(context.x).high / 2) / math.log(farthest))
        if context.rng.chance(0.7):
            return context.dtype if context.dtype != "bfloat16" else "float32", Interval(-reach, reach)
    most = 0
    while most < 3 and base.largest ** (most + 1) <= full_range(context.x).high / 2:
        most += 1
    if context.dtype in FLOATS and context.rng.chance(0.5):
        return context.dtype if context.dtype != "bfloat16" else "float32", Interval(most, most)
    dtype = context.rng.choice(("int64", "int32") if context.rng.chance(0.9) else INTEGERS)
    return dtype, Interval(0, most)


#: Bases from here on are taken to fractional and to negative powers.
_AWAY = 0.05


def _powered(context: NodeContext) -> Interval:
    base, exponent = context.range(0), context.range(1)
    if base.low >= _AWAY:
        corners = [x**y for x in base for y in exponent]
        return after_rounding(Interval(min(corners), max(corners)), context.dtype, 4)
    parts = []
    for power in range(int(exponent.low), int(exponent.high) + 1):
        ends = [base.low**power, base.high**power]
        if base.low < 0 < base.high and power:
            ends.append(0)
        parts.append(Interval(min(ends), max(ends)))
    return after_rounding(hull(parts), context.dtype, 4)


register_broadcasting(
    "Mod",
    {13: NUMBERS},
    _remainder,
    _remainder_text,
    within=_dividend,
    second=_modulus,
    plan=_plan_mod,
    attribute_specs=(planned_attribute("fmod", 0, Choice(0, 1)),),
)
# The form of opset 15 only adds bfloat16 to the exponent's types.
register(
    OperatorSpec(
        "Pow",
        13,
        input_specs=(
            PRIMARY_INPUT,
            DataInput(
                draw_further_shape,
                dtype=lambda context: context.plan[0],
                within=lambda context: context.plan[1],
            ),
        ),
        plan=_power,
        infer=broadcast_type,
        values=_powered,
        within=moderate_range,
        dtypes=(*FLOATS, "int32", "int64"),
        empty=True,
        dynamic=True,
        torch="torch.pow({0}, {1}).to({0}.dtype)",
    )
)
