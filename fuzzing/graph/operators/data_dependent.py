"""Operators that keep some elements, with data-dependent output lengths (except Compress)."""

from __future__ import annotations

from collections.abc import Sequence

from fuzzing.graph.attribute_domains import Axis, Choice
from fuzzing.graph.constants import known_integers, make_constant, requires_static_inputs
from fuzzing.graph.intervals import Interval, full_range
from fuzzing.graph.ir import Constant
from fuzzing.graph.operator_spec import (
    PRIMARY_INPUT,
    AttributeSpec,
    ConstantInput,
    DataInput,
    GraphLimits,
    NodeContext,
    OperatorSpec,
)
from fuzzing.graph.operators import register
from fuzzing.graph.operators.indexing import listed
from fuzzing.graph.operators.layout import product
from fuzzing.graph.operators.shape import MOST
from fuzzing.graph.types import ANY, Dim, Shape, TensorType
from fuzzing.rng import Rng

_RANKED = tuple(range(1, 9))
_BUT_BFLOAT16 = tuple(dtype for dtype in ANY if dtype != "bfloat16")


def _below(dims: Sequence[Dim]) -> Interval:
    known = [dim for dim in dims if dim is not None]
    return Interval(0, max(known, default=0) if len(known) == len(dims) else MOST)


# Compress

#: A longer condition on a flattened tensor is no other test.
_LONGEST = 32


def _condition(context: NodeContext) -> Constant:
    """Which are kept, at least one; sometimes shorter than the axis."""
    rng = context.rng
    length = context.x.elements if context.get("axis") is None else context.dims(0)[context.axis()]
    length = min(length, _LONGEST)
    if rng.chance(0.2):
        length = rng.between(1, length)
    kept = set(rng.subset(length))
    return make_constant("bool", [place in kept for place in range(length)])


def _compressed(context: NodeContext) -> tuple[TensorType, ...]:
    kept = known_integers(context, 1)
    count = None if kept is None else sum(kept)
    if context.get("axis") is None:
        return (TensorType(context.dtype, (count,)),)
    axis = context.axis()
    return (TensorType(context.dtype, (*context.shape[:axis], count, *context.shape[axis + 1 :])),)


def _torch_compress(context: NodeContext, names: Sequence[str]) -> str:
    places = listed([place for place, kept in enumerate(context.numbers(1)) if kept])
    if context.get("axis") is None:
        return f"{names[0]}.reshape(-1).index_select(0, {places})"
    return f"{names[0]}.index_select({context.axis()}, {places})"


def _compress(since: int, dtypes: tuple[str, ...]) -> OperatorSpec:
    return OperatorSpec(
        "Compress",
        since,
        input_specs=(PRIMARY_INPUT, ConstantInput(_condition)),
        ranks=_RANKED,
        infer=_compressed,
        within=full_range,
        dtypes=dtypes,
        attribute_specs=(AttributeSpec("axis", Axis(), omit=0.2),),
        torch=requires_static_inputs(_torch_compress),
    )


# Unique
def _unique_plan(context: NodeContext) -> None:
    context.outputs = context.rng.between(1, min(4, context.limits.max_outputs))


def _uniques(context: NodeContext) -> tuple[TensorType, ...]:
    """The unique elements, their first positions, the inverse and the counts (Unique-11)."""
    if context.get("axis") is None:
        left: Shape = (None,)
        total = product(context.shape)
    else:
        axis = context.axis()
        left = (*context.shape[:axis], None, *context.shape[axis + 1 :])
        total = context.shape[axis]
    unknown = TensorType("int64", (None,))
    found = (TensorType(context.dtype, left), unknown, TensorType("int64", (total,)), unknown)
    return found[: context.outputs]


def _unique_values(context: NodeContext) -> tuple[Interval, ...]:
    total = [product(context.shape)]
    places = _below(total)
    return (context.range(0), places, places, Interval(1, max(1, places.high)))[: context.outputs]


def _unique(since: int, dtypes: tuple[str, ...]) -> OperatorSpec:
    return OperatorSpec(
        "Unique",
        since,
        ranks=_RANKED,
        infer=_uniques,
        values=_unique_values,
        within=full_range,
        dtypes=dtypes,
        plan=_unique_plan,
        data_dependent=True,
        attribute_specs=(
            AttributeSpec("axis", Axis(), omit=0.5),
            AttributeSpec("sorted", Choice(0, 1), omit=0.4, default=1),
        ),
    )


# NonMaxSuppression
def _boxes(shape: tuple[int, ...]) -> bool:
    return shape[2] == 4


def _fresh_boxes(rng: Rng, limits: GraphLimits) -> tuple[int, ...]:
    batch, count = [rng.between(max(1, limits.min_dim), max(1, limits.max_dim)) for _ in range(2)]
    return (batch, count, 4)


def _scores(context: NodeContext) -> Shape:
    batch, count, _ = context.dims(0)
    return (batch, context.rng.between(1, max(1, min(3, context.limits.max_dim))), count)


def _eighths(context: NodeContext, low: int, high: int) -> float:
    return context.rng.between(low, high) / 8


def _scalar_or_one(context: NodeContext, dtype: str, value: float) -> Constant:
    return make_constant(dtype, (value,), () if context.rng.chance(0.5) else (1,))


register(
    _compress(11, _BUT_BFLOAT16),
    _compress(28, ANY),
    OperatorSpec("NonZero", 13, ranks=_RANKED, values=lambda context: _below(context.shape),
                 within=full_range, infer=lambda context: (TensorType("int64", (context.rank, None)),),
                 dtypes=ANY, empty=True, dynamic=True, data_dependent=True,
                 torch=lambda context, names: f"torch.nonzero({names[0]}).t()"),
    _unique(11, _BUT_BFLOAT16),
    _unique(28, ANY),
    # Three inputs at least: the third is how many boxes to keep, by default none.
    OperatorSpec("NonMaxSuppression", 11, degrees=(3, 4, 5), ranks=(3,), dtypes=("float32",), takes=_boxes,
                 draw_shape=_fresh_boxes, infer=lambda context: (TensorType("int64", (None, 3)),),
                 data_dependent=True,
                 values=lambda context: _below((*context.shape, *(context.type(1).shape or (None,)))),
                 input_specs=(PRIMARY_INPUT, DataInput(_scores),
                              ConstantInput(lambda context: _scalar_or_one(context, "int64",
                                                                           context.rng.between(1, 4))),
                              ConstantInput(lambda context: _scalar_or_one(context, "float32",
                                                                           _eighths(context, 0, 8)),
                                            omit=0.2),
                              ConstantInput(lambda context: _scalar_or_one(context, "float32",
                                                                           _eighths(context, -4, 4)))),
                 attribute_specs=(AttributeSpec("center_point_box", Choice(0, 1), omit=0.4, default=0),)),
)  # fmt: skip
