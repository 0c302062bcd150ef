"""Operators that give their input's elements as they are, or in another type."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fuzzing.graph.domains import Between, Choice, Made
from fuzzing.graph.intervals import BOOLEAN, WHOLE, Interval, whole
from fuzzing.graph.ir import Attribute, Constant
from fuzzing.graph.literals import scalar
from fuzzing.graph.onnx_writer import DTYPES
from fuzzing.graph.operator import LEAD, Auxiliary, Data, Operator, Setting
from fuzzing.graph.operators import register
from fuzzing.graph.operators.elementwise import PLAIN
from fuzzing.graph.rounding import STEP, rounded
from fuzzing.graph.site import Site
from fuzzing.graph.types import ANY, FLOATS, UNSIGNED, TensorType

_NAMES = {number: name for name, number in DTYPES.items()}


def converted(found: Interval, dtype: str) -> Interval:
    """Bounds on elements after their conversion to another type: integers drop fractions, floats round."""
    if dtype == "bool":
        return BOOLEAN
    if dtype in STEP:
        return rounded(found, dtype)
    return Interval(math.trunc(found.low), math.trunc(found.high))


def _fits(found: Interval, dtype: str, to: str) -> bool:
    """Whether a type holds these numbers; of a fraction below zero what is unsigned is anybody's guess."""
    if to in UNSIGNED and found.low < 0:
        return False
    return to == dtype or WHOLE[to].holds(converted(found, to))


def _target(site: Site) -> str:
    """Any type that holds the lead input's numbers: its own and bool do in any case."""
    found = site.range(0)
    return site.draws.choice([to for to in ANY if _fits(found, site.dtype, to)])


def _is_target(value: Attribute, site: Site) -> bool:
    """Whether it is a type that holds what is known of the lead input's numbers."""
    to = _NAMES.get(value) if isinstance(value, int) else None
    return to in ANY and (site.ranges[0] is None or _fits(site.ranges[0], site.dtype, to))


def _bounds(site: Site, to: str) -> Interval:
    return site.range(0) if to == site.dtype else converted(site.range(0), to)


def _cast_type(site: Site) -> tuple[TensorType, ...]:
    return (TensorType(_NAMES[site.get("to")], site.x.shape),)


def _cast_text(site: Site, names: Sequence[str]) -> str:
    return f"{names[0]}.to(torch.{_NAMES[site.get('to')]})"


#: About conversions to float8 alone; onnxruntime refuses anything but the default for other types.
_SATURATE = Setting("saturate", Choice(1), omit=0.9, default=1)


def _cast(since: int, settings: tuple[Setting, ...]) -> Operator:
    return Operator(
        "Cast",
        since,
        dtypes=ANY,
        within=whole,
        infer=_cast_type,
        values=lambda site: _bounds(site, _NAMES[site.get("to")]),
        settings=(Setting("to", Made(lambda site: DTYPES[_target(site)], _is_target)), *settings),
        empty=True,
        dynamic=True,
        torch=_cast_text,
    )


def _cast_like(since: int, settings: tuple[Setting, ...]) -> Operator:
    return Operator(
        "CastLike",
        since,
        slots=(LEAD, Data(lambda site: (None,) * site.draws.between(1, site.limits.max_rank), dtype=_target)),
        dtypes=ANY,
        within=whole,
        infer=lambda site: (TensorType(site.type(1).dtype, site.x.shape),),
        values=lambda site: _bounds(site, site.type(1).dtype),
        settings=settings,
        empty=True,
        dynamic=True,
        torch="{0}.to({1}.dtype)",
    )


def _dropout_type(site: Site) -> tuple[TensorType, ...]:
    return (site.x, TensorType("bool", site.x.shape))[: site.outputs]


def _plan_dropout(site: Site) -> None:
    site.outputs = site.draws.between(1, 2)


def _ratio(types: tuple[str, ...]) -> Auxiliary:
    """How much to drop, if it were training; of a type of its own."""

    def value(site: Site) -> Constant:
        dtype = site.dtype if site.dtype in types and site.draws.chance(0.7) else site.draws.choice(types)
        return scalar(dtype, site.draws.choice((0.5, 0.25, 0.0)))

    return Auxiliary(value, omit=0.3)


def _dropout_text(site: Site, names: Sequence[str]) -> str:
    if site.outputs == 1:
        return names[0]
    return f"({names[0]}, torch.ones_like({names[0]}, dtype=torch.bool))"


def _dropout(since: int, ratios: tuple[str, ...]) -> Operator:
    """As it is in inference, where nothing is dropped: that is said by an input, or by its absence."""
    return Operator(
        "Dropout",
        since,
        slots=(LEAD, _ratio(ratios), Auxiliary(lambda site: scalar("bool", False))),
        degrees=(1, 2, 3),
        within=whole,
        infer=_dropout_type,
        values=lambda site: (site.range(0), Interval(1, 1))[: site.outputs],
        settings=(Setting("seed", Between(0, (1 << 31) - 1), omit=0.7, default=0),),
        plan=_plan_dropout,
        empty=True,
        dynamic=True,
        torch=_dropout_text,
    )


register(
    Operator("Identity", 13, dtypes=ANY, within=whole, empty=True, dynamic=True, torch="{0}"),
    _cast(13, ()),
    _cast(19, (_SATURATE,)),
    _cast_like(15, ()),
    _cast_like(19, (_SATURATE,)),
    _dropout(13, PLAIN),
    _dropout(22, FLOATS),
)
