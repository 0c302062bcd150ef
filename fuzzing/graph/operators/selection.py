"""Where, Clip and TopK."""

from __future__ import annotations

from collections.abc import Sequence

from fuzzing.graph.attribute_domains import Axis, Choice
from fuzzing.graph.constants import bounds, make_scalar
from fuzzing.graph.intervals import FULL_RANGES, Interval, full_range, hull
from fuzzing.graph.ir import Constant
from fuzzing.graph.operator_spec import (
    ANY_RANK,
    PRIMARY_INPUT,
    AttributeSpec,
    ConstantInput,
    DataInput,
    NodeContext,
    OperatorSpec,
    int64,
)
from fuzzing.graph.operators import register
from fuzzing.graph.operators.arithmetic import broadcast_type, draw_further_shape
from fuzzing.graph.operators.elementwise import PLAIN
from fuzzing.graph.types import ANY, FLOATS, INTEGERS, NUMBERS, UNSIGNED, Shape, TensorType


def _least(context: NodeContext) -> Constant:
    if context.dtype in FLOATS:
        return make_scalar(
            context.dtype, context.rng.choice((0.0, -1.0, -0.5, 0.25))
        )  # the same in every type
    return make_scalar(
        context.dtype, context.rng.choice((0, 1, 2) if context.dtype in UNSIGNED else (0, 1, -2))
    )


def _floor(context: NodeContext) -> float:
    if not context.given(1):
        return FULL_RANGES[context.dtype].low
    constant = context.constants[1]
    return context.range(1).low if constant is None else bounds(constant).low


def _clipped(context: NodeContext) -> Interval:
    """Where the bounds contradict each other, the upper one holds."""
    low, high = (max(end, _floor(context)) for end in context.range(0))
    if not context.given(2):
        return Interval(low, high)
    top = context.range(2)
    return Interval(min(low, top.low), min(high, top.high))


def _count(context: NodeContext) -> Constant:
    """One if unsorted: ONNX leaves the order open then."""
    return int64(context.rng.between(1, context.dims(0)[context.axis()]) if context.get("sorted") else 1)


def _chosen(context: NodeContext) -> tuple[TensorType, TensorType]:
    if context.x.shape is None:
        return TensorType(context.dtype, None), TensorType("int64", None)
    axis = context.axis()
    count = context.numbers(1)[0] if context.constants[1] is not None else None
    shape: Shape = (*context.shape[:axis], count, *context.shape[axis + 1 :])
    return TensorType(context.dtype, shape), TensorType("int64", shape)


def _chosen_values(context: NodeContext) -> tuple[Interval, Interval]:
    return context.range(0), Interval(0, context.dims(0)[context.axis()] - 1)


def _chosen_text(context: NodeContext, names: Sequence[str]) -> str:
    """With equal elements in order, as in ONNX; torch's topk does not do so."""
    axis, descending = context.axis(), bool(context.get("largest"))
    ordered = f"torch.sort({names[0]}, dim={axis}, descending={descending}, stable=True)"
    return f"tuple([part.narrow({axis}, 0, {context.numbers(1)[0]}) for part in {ordered}])"


def _where(since: int, dtypes: tuple[str, ...]) -> OperatorSpec:
    return OperatorSpec(
        "Where",
        since,
        input_specs=(
            DataInput(draw_further_shape, dtype="bool"),
            PRIMARY_INPUT,
            DataInput(draw_further_shape, within=lambda context: FULL_RANGES[context.dtype]),
        ),
        primary=1,
        infer=broadcast_type,
        values=lambda context: hull((context.range(1), context.range(2))),
        within=full_range,
        dtypes=dtypes,
        empty=True,
        dynamic=True,
        torch="torch.where({0}, {1}, {2})",
    )


def _top_k(since: int, dtypes: tuple[str, ...]) -> OperatorSpec:
    return OperatorSpec(
        "TopK",
        since,
        input_specs=(PRIMARY_INPUT, ConstantInput(_count)),
        ranks=ANY_RANK[1:],
        infer=_chosen,
        values=_chosen_values,
        within=full_range,
        dtypes=dtypes,
        attribute_specs=(
            AttributeSpec("axis", Axis(), omit=0.3, default=-1),
            AttributeSpec("largest", Choice(0, 1), omit=0.4, default=1),
            AttributeSpec("sorted", Choice(0, 1), omit=0.8, default=1),
        ),
        torch=_chosen_text,
    )


def _clip(since: int, dtypes: tuple[str, ...]) -> OperatorSpec:
    """With one bound a constant and the other an input: compilers have code for both.

    ONNX lists bfloat16 from opset 13 on, but defines Clip by Where, which takes it from 16 on.
    """
    return OperatorSpec(
        "Clip",
        since,
        input_specs=(
            PRIMARY_INPUT,
            ConstantInput(_least, omit=0.4),
            DataInput(
                lambda context: (),
                within=lambda context: Interval(_floor(context), FULL_RANGES[context.dtype].high),
            ),
        ),
        degrees=(1, 2, 3),
        within=full_range,
        values=_clipped,
        dtypes=dtypes,
        empty=True,
        dynamic=True,
        torch=lambda context, names: names[0] if context.degree == 1 else f"torch.clamp({', '.join(names)})",
    )


register(
    _where(9, (*PLAIN, *INTEGERS, "bool")),
    _where(16, ANY),
    _top_k(11, PLAIN + INTEGERS),
    _top_k(24, NUMBERS),
    _clip(13, PLAIN + INTEGERS),
    _clip(16, NUMBERS),
)
