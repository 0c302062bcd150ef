"""Comparisons of two tensors, and predicates of one."""

from __future__ import annotations

from collections.abc import Sequence

from fuzzing.graph.attribute_domains import Choice
from fuzzing.graph.intervals import BOOLEAN, FULL_RANGES, full_range
from fuzzing.graph.operator_spec import (
    PRIMARY_INPUT,
    AttributeSpec,
    DataInput,
    NodeContext,
    OperatorSpec,
    TorchForm,
)
from fuzzing.graph.operators import register
from fuzzing.graph.operators.arithmetic import broadcast_type, draw_further_shape
from fuzzing.graph.operators.elementwise import PLAIN
from fuzzing.graph.types import ANY, FLOATS, INTEGERS, NUMBERS, TensorType


def _answers(context: NodeContext) -> tuple[TensorType, ...]:
    (type_,) = broadcast_type(context)
    return (TensorType("bool", type_.shape),)


def _comparison(name: str, since: int, dtypes: tuple[str, ...], torch: str) -> OperatorSpec:
    return OperatorSpec(
        name,
        since,
        input_specs=(
            PRIMARY_INPUT,
            DataInput(draw_further_shape, within=lambda context: FULL_RANGES[context.dtype]),
        ),
        infer=_answers,
        values=lambda context: BOOLEAN,
        within=full_range,
        dtypes=dtypes,
        empty=True,
        dynamic=True,
        torch=torch,
    )


def _question(
    name: str,
    since: int,
    dtypes: tuple[str, ...],
    torch: TorchForm,
    attribute_specs: tuple[AttributeSpec, ...] = (),
) -> OperatorSpec:
    return OperatorSpec(
        name,
        since,
        infer=lambda context: (TensorType("bool", context.x.shape),),
        values=lambda context: BOOLEAN,
        within=full_range,
        dtypes=dtypes,
        empty=True,
        dynamic=True,
        attribute_specs=attribute_specs,
        torch=torch,
    )


def _infinite(context: NodeContext, names: Sequence[str]) -> str:
    sides = [
        f"torch.{function}({names[0]})"
        for function, side in (("isneginf", "detect_negative"), ("isposinf", "detect_positive"))
        if context.get(side)
    ]
    return " | ".join(sides) if sides else f"torch.zeros_like({names[0]}, dtype=torch.bool)"


_OLD_NUMBERS = PLAIN + INTEGERS
_SIDES = tuple(
    AttributeSpec(name, Choice(0, 1), omit=0.6, default=1) for name in ("detect_negative", "detect_positive")
)

register(
    _comparison("Equal", 13, ANY, "torch.eq({0}, {1})"),
    _comparison("Less", 13, NUMBERS, "torch.lt({0}, {1})"),
    _comparison("Greater", 13, NUMBERS, "torch.gt({0}, {1})"),
    _comparison("LessOrEqual", 12, _OLD_NUMBERS, "torch.le({0}, {1})"),
    _comparison("LessOrEqual", 16, NUMBERS, "torch.le({0}, {1})"),
    _comparison("GreaterOrEqual", 12, _OLD_NUMBERS, "torch.ge({0}, {1})"),
    _comparison("GreaterOrEqual", 16, NUMBERS, "torch.ge({0}, {1})"),
    # Always false here, as every edge is finite: what folds them away is worth testing all the same.
    _question("IsNaN", 13, FLOATS, "torch.isnan({0})"),
    _question("IsInf", 10, ("float32", "float64"), _infinite, _SIDES),
    _question("IsInf", 20, FLOATS, _infinite, _SIDES),
)
