"""Powers and remainders."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fuzzing.graph.domains import Choice
from fuzzing.graph.intervals import Interval, cut, hull, modest, whole
from fuzzing.graph.operator import LEAD, Data, Operator, planned
from fuzzing.graph.operators import register
from fuzzing.graph.operators.arithmetic import broadcasting, companion, signed, together
from fuzzing.graph.rounding import rounded
from fuzzing.graph.site import Site
from fuzzing.graph.types import FLOATS, INTEGERS, NUMBERS, TensorType


def _dividend(type_: TensorType) -> Interval:
    """Not so much larger than the modulus that a compiler that divides and multiplies back keeps no bit."""
    return cut(modest(type_), Interval(-1e3, 1e3)) if type_.dtype in FLOATS else whole(type_)


def _plan_mod(site: Site) -> None:
    """Floats must be told to divide as fmod does; integers are sometimes, and else mostly told nothing."""
    if site.dtype in FLOATS or site.draws.chance(0.4):
        site.attributes["fmod"] = 1
    elif site.draws.chance(0.3):
        site.attributes["fmod"] = 0


def _modulus(site: Site) -> Interval:
    return signed(site, 0.5 if site.dtype in FLOATS else 1, whole(site.x).high)


def _remainder(site: Site) -> Interval:
    """Of the sign of the dividend with fmod, else of the divisor's; smaller than the divisor."""
    a, b = site.range(0), site.range(1)
    most = b.largest if site.dtype in FLOATS else b.largest - 1
    if site.get("fmod"):
        return Interval(max(min(a.low, 0), -most), min(max(a.high, 0), most))
    if b.low < 0:
        return Interval(-most, 0)
    return Interval(0, min(most, a.high) if a.low >= 0 else most)


def _remainder_text(site: Site, names: Sequence[str]) -> str:
    return f"torch.{'fmod' if site.get('fmod') else 'remainder'}({names[0]}, {names[1]})"


def _power(site: Site) -> tuple[str, Interval]:
    """The exponent's type and values: for a base that may be negative or near zero whole and not negative."""
    base = site.range(0)
    if base.low >= _AWAY and site.dtype in FLOATS:
        farthest = max(base.largest, 1 / base.low, 2.0)
        reach = min(4.0, math.log(whole(site.x).high / 2) / math.log(farthest))
        if site.draws.chance(0.7):
            return site.dtype if site.dtype != "bfloat16" else "float32", Interval(-reach, reach)
    most = 0
    while most < 3 and base.largest ** (most + 1) <= whole(site.x).high / 2:
        most += 1
    if site.dtype in FLOATS and site.draws.chance(0.5):
        return site.dtype if site.dtype != "bfloat16" else "float32", Interval(most, most)
    dtype = site.draws.choice(("int64", "int32") if site.draws.chance(0.9) else INTEGERS)
    return dtype, Interval(0, most)


#: Bases from here on are taken to fractional and to negative powers.
_AWAY = 0.05


def _powered(site: Site) -> Interval:
    base, exponent = site.range(0), site.range(1)
    if base.low >= _AWAY:
        corners = [x**y for x in base for y in exponent]
        return rounded(Interval(min(corners), max(corners)), site.dtype, 4)
    parts = []
    for power in range(int(exponent.low), int(exponent.high) + 1):
        ends = [base.low**power, base.high**power]
        if base.low < 0 < base.high and power:
            ends.append(0)
        parts.append(Interval(min(ends), max(ends)))
    return rounded(hull(parts), site.dtype, 4)


broadcasting(
    "Mod",
    {13: NUMBERS},
    _remainder,
    _remainder_text,
    within=_dividend,
    second=_modulus,
    plan=_plan_mod,
    settings=(planned("fmod", 0, Choice(0, 1)),),
)
# The form of opset 15 only adds bfloat16 to the exponent's types.
register(
    Operator(
        "Pow",
        13,
        slots=(LEAD, Data(companion, dtype=lambda site: site.plan[0], within=lambda site: site.plan[1])),
        plan=_power,
        infer=together,
        values=_powered,
        within=modest,
        dtypes=(*FLOATS, "int32", "int64"),
        empty=True,
        dynamic=True,
        torch="torch.pow({0}, {1}).to({0}.dtype)",
    )
)
