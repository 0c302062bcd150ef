"""Trilu, EyeLike, OneHot and ReverseSequence."""

from __future__ import annotations

from collections.abc import Sequence

from fuzzing.graph.attribute_domains import Choice, Computed, IntRange, planned_attribute
from fuzzing.graph.constants import (
    bounds,
    known_integers,
    make_constant,
    make_scalar,
    numbers,
    requires_static_inputs,
)
from fuzzing.graph.intervals import UNIT, Interval, full_range, hull
from fuzzing.graph.ir import Constant
from fuzzing.graph.onnx_writer import DTYPES
from fuzzing.graph.operator_spec import (
    PRIMARY_INPUT,
    AttributeSpec,
    ConstantInput,
    NodeContext,
    OperatorSpec,
    int64,
)
from fuzzing.graph.operators import register
from fuzzing.graph.operators.concat_split import max_growth, repeat_numbers
from fuzzing.graph.operators.indexing import listed
from fuzzing.graph.types import ANY, NUMBERS, TensorType

_MATRICES = tuple(range(2, 9))
#: The element types of operators that ONNX opened to bfloat16 late.
_BUT_BFLOAT16 = tuple(dtype for dtype in ANY if dtype != "bfloat16")
_NUMBERS_BUT_BFLOAT16 = tuple(dtype for dtype in NUMBERS if dtype != "bfloat16")


# Trilu
def _diagonal(context: NodeContext) -> Constant:
    rows, columns = context.dims(0)[-2:]
    return make_scalar("int64", context.rng.between(-rows, columns))


def with_zero(context: NodeContext) -> Interval:
    """Bounds on the primary input's elements and on zeros among them."""
    return hull((context.range(0), Interval(0, 0)))


def _torch_trilu(context: NodeContext, names: Sequence[str]) -> str:
    function = "triu" if context.get("upper") else "tril"
    return f"torch.{function}({names[0]}, {context.numbers(1)[0] if context.given(1) else 0})"


# EyeLike
def _eye_dtype(context: NodeContext) -> int:
    return DTYPES[context.rng.choice((context.dtype, "float32", "int64"))]


_NAMES = {number: name for name, number in DTYPES.items()}


def _eye(context: NodeContext) -> tuple[TensorType, ...]:
    dtype = context.get("dtype")
    return (TensorType(context.dtype if dtype is None else _NAMES[dtype], context.x.shape),)


def _off_diagonal(context: NodeContext) -> int:
    rows, columns = context.dims(0)
    return context.rng.between(1 - rows, columns - 1)


def _torch_eye(context: NodeContext, _names: Sequence[str]) -> str:
    rows, columns = context.dims(0)
    return (
        f"(torch.arange({columns}) - torch.arange({rows}).reshape({rows}, 1) == {context.get('k')})"
        f".to(torch.{_eye(context)[0].dtype})"
    )


# OneHot


#: Which types of the number of classes and of the values onnxruntime 1.31 knows, by the indices' type; other
#: frontends know fewer.
_HOT_TYPES = {
    "float32": (("float32", "float32"), ("int64", "int64")),
    "int64": (("int64", "int64"), ("int64", "float32"), ("float32", "int32")),
    "int32": (("int32", "float32"), ("float32", "float32")),
}

_OTHER_HOT_TYPES = (("int64", "int64"),)


def _hot_plan(context: NodeContext) -> tuple[str, str]:
    return context.rng.choice(_HOT_TYPES.get(context.dtype, _OTHER_HOT_TYPES))


def _depth(context: NodeContext) -> Constant:
    most = max(1, min(2 * context.limits.max_dim, max_growth(context)))
    shape = () if context.rng.chance(0.5) else (1,)
    return make_constant(context.plan[0], (context.rng.between(1, most),), shape)


def _off_on(context: NodeContext) -> Constant:
    return make_constant(context.plan[1], context.rng.choice(((0, 1), (0, 1), (1, 0), (2, 5))))


def _one_hot(context: NodeContext) -> tuple[TensorType, ...]:
    classes, shape = known_integers(context, 1), list(context.shape)
    axis = context.get("axis")
    shape.insert(axis if axis >= 0 else axis + context.rank + 1, None if classes is None else int(classes[0]))
    return (TensorType(context.type(2).dtype, tuple(shape)),)


def _two_values(context: NodeContext) -> Interval:
    values = context.constants[2]
    assert values is not None
    return bounds(values)


def _torch_one_hot(context: NodeContext, names: Sequence[str]) -> str:
    """An index matches its class counted from either end."""
    axis, values = context.get("axis"), context.constants[2]
    assert values is not None
    classes, off_on = int(context.numbers(1)[0]), numbers(values).tolist()
    axis = axis if axis >= 0 else axis + context.rank + 1
    counted = f"torch.arange({classes}).reshape({[classes] + [1] * (context.rank - axis)})"
    indices = f"{names[0]}.to(torch.int64).unsqueeze({axis})"
    dtype = f"torch.{values.dtype}"
    return (
        f"torch.where(({indices} == {counted}) | ({indices} + {classes} == {counted}), "
        f"torch.tensor({off_on[1]!r}, dtype={dtype}), torch.tensor({off_on[0]!r}, dtype={dtype}))"
    )


# ReverseSequence
def _reverse_plan(context: NodeContext) -> None:
    """ONNX's defaults (time 0, batch 1) or the other way round; defaults are sometimes omitted."""
    time = context.rng.below(2)
    for name, axis, default in (("time_axis", time, 0), ("batch_axis", 1 - time, 1)):
        if axis != default or context.rng.chance(0.5):
            context.attributes[name] = axis


def _beginnings(context: NodeContext) -> Constant:
    shape = context.dims(0)
    time, batch = shape[context.get("time_axis")], shape[context.get("batch_axis")]
    return int64(*repeat_numbers(context, 1, time, batch))


def _torch_reverse(context: NodeContext, names: Sequence[str]) -> str:
    """Each position takes the mirrored element of its sequence's prefix, or its own."""
    time, batch = context.get("time_axis"), context.get("batch_axis")
    steps = range(context.dims(0)[time])
    places = [[last - 1 - step if step < last else step for step in steps] for last in context.numbers(1)]
    shape = [1] * context.rank
    shape[time], shape[batch] = len(steps), len(places)
    turned = f"{listed(places)}{'.t()' if time < batch else ''}.reshape({shape})"
    return f"torch.take_along_dim({names[0]}, {turned}, {time})"


def _reverse_sequence(since: int, dtypes: tuple[str, ...]) -> OperatorSpec:
    axis = Choice(0, 1)
    return OperatorSpec(
        "ReverseSequence",
        since,
        input_specs=(PRIMARY_INPUT, ConstantInput(_beginnings)),
        ranks=_MATRICES,
        within=full_range,
        dtypes=dtypes,
        plan=_reverse_plan,
        attribute_specs=(
            planned_attribute("time_axis", 0, axis),
            planned_attribute("batch_axis", 1, axis),
        ),
        torch=requires_static_inputs(_torch_reverse),
    )


def _eye_like(since: int, dtypes: tuple[str, ...]) -> OperatorSpec:
    return OperatorSpec(
        "EyeLike",
        since,
        ranks=(2,),
        infer=_eye,
        values=lambda context: UNIT,
        within=full_range,
        dtypes=dtypes,
        attribute_specs=(
            AttributeSpec("dtype", Computed(_eye_dtype, lambda value, context: value in _NAMES), omit=0.5),
            AttributeSpec(
                "k",
                Computed(_off_diagonal, lambda value, _context: isinstance(value, int)),
                omit=0.4,
                default=0,
            ),
        ),
        torch=requires_static_inputs(_torch_eye),
    )


register(
    OperatorSpec("Trilu", 14, input_specs=(PRIMARY_INPUT, ConstantInput(_diagonal)), degrees=(1, 2),
                 ranks=_MATRICES, values=with_zero, within=full_range, dtypes=ANY,
                 attribute_specs=(AttributeSpec("upper", Choice(0, 1), omit=0.3, default=1),),
                 torch=requires_static_inputs(_torch_trilu)),
    _eye_like(9, _BUT_BFLOAT16),
    _eye_like(22, ANY),
    OperatorSpec("OneHot", 11, input_specs=(PRIMARY_INPUT, ConstantInput(_depth), ConstantInput(_off_on)),
                 ranks=(1, 2, 3, 4), plan=_hot_plan, infer=_one_hot, values=_two_values, within=full_range,
                 dtypes=_NUMBERS_BUT_BFLOAT16,
                 attribute_specs=(AttributeSpec("axis",
                                                IntRange(lambda context: -context.rank - 1,
                                                         lambda context: context.rank), omit=0.4,
                                                default=-1),), torch=requires_static_inputs(_torch_one_hot)),
    _reverse_sequence(10, _BUT_BFLOAT16),
    _reverse_sequence(28, ANY),
)  # fmt: skip
