"""Casts and operators that return their input unchanged."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fuzzing.graph.attribute_domains import Choice, Computed, IntRange
from fuzzing.graph.constants import make_scalar
from fuzzing.graph.intervals import BOOLEAN, FULL_RANGES, Interval, full_range
from fuzzing.graph.ir import Attribute, Constant
from fuzzing.graph.onnx_writer import DTYPES
from fuzzing.graph.operator_spec import (
    PRIMARY_INPUT,
    AttributeSpec,
    ConstantInput,
    DataInput,
    NodeContext,
    OperatorSpec,
)
from fuzzing.graph.operators import register
from fuzzing.graph.operators.elementwise import PLAIN
from fuzzing.graph.rounding import STEP, after_rounding
from fuzzing.graph.types import ANY, FLOATS, UNSIGNED, TensorType

_NAMES = {number: name for name, number in DTYPES.items()}


def converted(found: Interval, dtype: str) -> Interval:
    """Bounds after conversion to another type: integers truncate fractions, floats round."""
    if dtype == "bool":
        return BOOLEAN
    if dtype in STEP:
        return after_rounding(found, dtype)
    return Interval(math.trunc(found.low), math.trunc(found.high))


def _fits(found: Interval, dtype: str, to: str) -> bool:
    """Whether a type holds these numbers; negative fractions are undefined for unsigned types."""
    if to in UNSIGNED and found.low < 0:
        return False
    return to == dtype or FULL_RANGES[to].contains(converted(found, to))


def _target(context: NodeContext) -> str:
    """Any type that holds the primary input's numbers; its own and bool always do."""
    found = context.range(0)
    return context.rng.choice([to for to in ANY if _fits(found, context.dtype, to)])


def _is_target(value: Attribute, context: NodeContext) -> bool:
    to = _NAMES.get(value) if isinstance(value, int) else None
    return to in ANY and (context.ranges[0] is None or _fits(context.ranges[0], context.dtype, to))


def _bounds(context: NodeContext, to: str) -> Interval:
    return context.range(0) if to == context.dtype else converted(context.range(0), to)


#: About conversions to float8 alone; onnxruntime refuses anything but the default for other types.
_SATURATE = AttributeSpec("saturate", Choice(1), omit=0.9, default=1)


def _cast(since: int, attribute_specs: tuple[AttributeSpec, ...]) -> OperatorSpec:
    return OperatorSpec(
        "Cast",
        since,
        dtypes=ANY,
        within=full_range,
        infer=lambda context: (TensorType(_NAMES[context.get("to")], context.x.shape),),
        values=lambda context: _bounds(context, _NAMES[context.get("to")]),
        attribute_specs=(
            AttributeSpec("to", Computed(lambda context: DTYPES[_target(context)], _is_target)),
            *attribute_specs,
        ),
        empty=True,
        dynamic=True,
        torch=lambda context, names: f"{names[0]}.to(torch.{_NAMES[context.get('to')]})",
    )


def _cast_like(since: int, attribute_specs: tuple[AttributeSpec, ...]) -> OperatorSpec:
    return OperatorSpec(
        "CastLike",
        since,
        input_specs=(
            PRIMARY_INPUT,
            DataInput(
                lambda context: (None,) * context.rng.between(1, context.limits.max_rank), dtype=_target
            ),
        ),
        dtypes=ANY,
        within=full_range,
        infer=lambda context: (TensorType(context.type(1).dtype, context.x.shape),),
        values=lambda context: _bounds(context, context.type(1).dtype),
        attribute_specs=attribute_specs,
        empty=True,
        dynamic=True,
        torch="{0}.to({1}.dtype)",
    )


def _dropout_type(context: NodeContext) -> tuple[TensorType, ...]:
    return (context.x, TensorType("bool", context.x.shape))[: context.outputs]


def _plan_dropout(context: NodeContext) -> None:
    context.outputs = context.rng.between(1, 2)


def _ratio(types: tuple[str, ...]) -> ConstantInput:

    def value(context: NodeContext) -> Constant:
        dtype = (
            context.dtype if context.dtype in types and context.rng.chance(0.7) else context.rng.choice(types)
        )
        return make_scalar(dtype, context.rng.choice((0.5, 0.25, 0.0)))

    return ConstantInput(value, omit=0.3)


def _dropout_text(context: NodeContext, names: Sequence[str]) -> str:
    if context.outputs == 1:
        return names[0]
    return f"({names[0]}, torch.ones_like({names[0]}, dtype=torch.bool))"


def _dropout(since: int, ratios: tuple[str, ...]) -> OperatorSpec:
    """As in inference, where nothing is dropped; selected by an input or its absence."""
    return OperatorSpec(
        "Dropout",
        since,
        input_specs=(
            PRIMARY_INPUT,
            _ratio(ratios),
            ConstantInput(lambda context: make_scalar("bool", False)),
        ),
        degrees=(1, 2, 3),
        within=full_range,
        infer=_dropout_type,
        values=lambda context: (context.range(0), Interval(1, 1))[: context.outputs],
        attribute_specs=(AttributeSpec("seed", IntRange(0, (1 << 31) - 1), omit=0.7, default=0),),
        plan=_plan_dropout,
        empty=True,
        dynamic=True,
        torch=_dropout_text,
    )


register(
    OperatorSpec("Identity", 13, dtypes=ANY, within=full_range, empty=True, dynamic=True, torch="{0}"),
    _cast(13, ()),
    _cast(19, (_SATURATE,)),
    _cast_like(15, ()),
    _cast_like(19, (_SATURATE,)),
    _dropout(13, PLAIN),
    _dropout(22, FLOATS),
)
