"""Quantization and dequantization.

Scales and zero points are constants, as in quantized models. Results saturate (ONNX operator reference), so
they are bounded by their type for any input.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from fuzzing.graph.attribute_domains import Choice, planned_attribute
from fuzzing.graph.constants import bounds, make_constant
from fuzzing.graph.intervals import FULL_RANGES, Interval, full_range, moderate_range, subtract, within
from fuzzing.graph.ir import Constant
from fuzzing.graph.onnx_types import DTYPES
from fuzzing.graph.operator_spec import PRIMARY_INPUT, AttributeSpec, ConstantInput, NodeContext, OperatorSpec
from fuzzing.graph.operators import register
from fuzzing.graph.types import INTEGERS, TensorType

BYTES = ("int8", "uint8")
_SHORTS = ("int16", "uint16")
_NAMES = {number: name for name, number in DTYPES.items()}
_SCALES = (0.01, 0.02, 0.05, 0.125, 0.25, 0.5)
#: Powers of two: products of quantized numbers with them are exact, and so is where a result is half way
#: between two, which ONNX rounds to even. With others the last bit of a scale decides that.
EXACT_SCALES = (0.0625, 0.125, 0.25, 0.5)


def scales(
    context: NodeContext,
    shape: tuple[int, ...] = (),
    dtype: str = "float32",
    among: Sequence[float] = _SCALES,
) -> Constant:
    """Positive scales."""
    return make_constant(dtype, [context.rng.choice(among) for _ in range(math.prod(shape))], shape)


def zeros(context: NodeContext, dtype: str, shape: tuple[int, ...] = ()) -> Constant:
    """Zero points: small ones, as symmetric ranges have zero and others lie anywhere."""
    low, high = FULL_RANGES[dtype]
    low, high = (0, 0) if dtype == "int32" else (max(int(low), -20), min(int(high), 20))
    return make_constant(dtype, [context.rng.between(low, high) for _ in range(math.prod(shape))], shape)


def less_zero(context: NodeContext, position: int, zero: int) -> Interval:
    """Bounds on an input's elements minus its zero points, which are another input."""
    constant = context.constants[zero] if context.given(zero) else None
    return (
        context.range(position) if constant is None else subtract(context.range(position), bounds(constant))
    )


# QuantizeLinear and DequantizeLinear
class _Grid(NamedTuple):
    """The scope of scales and zero points: the tensor, slices of an axis, or blocks along it."""

    shape: tuple[int, ...]
    dtype: str


def _spread(context: NodeContext, blocks: bool) -> tuple[int, ...]:
    """The shape of scales; sets `axis` and `block_size`."""
    rng, given = context.rng, context.attributes
    shape = context.dims(0)
    # Blocks of a vector could have a single scale, which onnxruntime takes for one of the whole tensor.
    kind = rng.below(3 if blocks and len(shape) > 1 else 2) if shape else 0
    if kind == 0:
        return ()
    axis = 1 if len(shape) > 1 and rng.chance(0.3) else rng.below(len(shape))
    if axis != 1 or rng.chance(0.3):
        given["axis"] = axis - len(shape) if rng.chance(0.1) else axis
    if kind == 1:
        return (shape[axis],)
    size = given["block_size"] = rng.between(1, shape[axis])
    return (*shape[:axis], -(-shape[axis] // size), *shape[axis + 1 :])


def _to_plan(types: Sequence[str], blocks: bool) -> Callable[[NodeContext], _Grid]:
    def plan(context: NodeContext) -> _Grid:
        shape, dtype = _spread(context, blocks), context.rng.choice(types)
        if context.degree == 2 and blocks and context.rng.chance(0.5):
            context.attributes["output_dtype"] = DTYPES[dtype]
        return _Grid(shape, dtype)

    return plan


def _quantized(context: NodeContext) -> tuple[TensorType, ...]:
    number = context.get("output_dtype")
    if context.given(2):
        dtype = context.type(2).dtype
    else:
        dtype = _NAMES[number] if number else "uint8"
    return (TensorType(dtype, context.shape),)


def _restored(context: NodeContext) -> tuple[TensorType, ...]:
    """Of the scale's type, unless another is requested (from opset 23 on)."""
    number = context.get("output_dtype")
    return (TensorType(_NAMES[number] if number else context.type(1).dtype, context.shape),)


def _to_values(context: NodeContext) -> Interval:
    """The quotients, rounded by at most one, plus the zero points; then saturated."""
    (type_,) = _quantized(context)
    low, high = _quotients(context)
    if context.given(2) and context.constants[2] is not None:
        points = bounds(context.constants[2])
        low, high = low + points.low, high + points.high
    limits = FULL_RANGES[type_.dtype]
    return Interval(min(max(low - 1, limits.low), limits.high), max(min(high + 1, limits.high), limits.low))


def _quotients(context: NodeContext) -> Interval:
    constant = context.constants[1]
    assert constant is not None, "scales are constants while solving"
    low, high = context.range(0)
    least, most = bounds(constant)
    corners = (low / least, low / most, high / least, high / most)
    return Interval(math.floor(min(corners)), math.ceil(max(corners)))


def _from_values(context: NodeContext) -> Interval:
    constant = context.constants[1]
    assert constant is not None, "scales are constants while solving"
    low, high = less_zero(context, 0, 2)
    most = bounds(constant).high * 1.001
    return Interval(min(low * most, 0.0), max(high * most, 0.0))


def _along(context: NodeContext, name: str, position: int) -> str:
    rank = len(context.dims(position))
    axis = context.axis() if rank else 0
    if context.get("block_size"):
        repeated = f"{name}.repeat_interleave({context.get('block_size')}, {axis})"
        return f"{repeated}.narrow({axis}, 0, {context.dims(0)[axis]})"
    return f"{name}.reshape({(-1, *(1,) * (context.rank - axis - 1))})" if rank else name


def _torch_to(context: NodeContext, names: Sequence[str]) -> str | None:
    (type_,) = _quantized(context)
    if type_.dtype not in INTEGERS:
        return None  # floats of eight bits and less are rounded by rules of their own
    low, high = FULL_RANGES[type_.dtype]
    text = f"torch.round({names[0]} / {_along(context, names[1], 1)})"
    if context.given(2):
        text += f" + {_along(context, names[2], 2)}"
    return f"torch.clamp({text}, {int(low)}, {int(high)}).to(torch.{type_.dtype})"


def _torch_from(context: NodeContext, names: Sequence[str]) -> str:
    text = f"{names[0]}.to(torch.float32)"
    if context.given(2):
        text = f"({text} - {_along(context, names[2], 2)}.to(torch.float32))"
    return f"{text} * {_along(context, names[1], 1)}"


_AXIS, _BLOCK = planned_attribute("axis", 1), planned_attribute("block_size", 0)


def _to(
    since: int,
    dtypes: tuple[str, ...],
    types: tuple[str, ...],
    *attribute_specs: AttributeSpec,
    blocks: bool = False,
) -> OperatorSpec:
    """From opset 19 on the scale has the primary input's type; 32-bit integers, which have none, are left
    out.
    """
    return OperatorSpec(
        "QuantizeLinear", since, dtypes=dtypes, within=moderate_range, plan=_to_plan(types, blocks),
        input_specs=(
            PRIMARY_INPUT,
            ConstantInput(lambda context: scales(context, context.plan.shape,
                                                 context.dtype if since > 13 else "float32")),
            ConstantInput(lambda context: zeros(context, context.plan.dtype, context.plan.shape)),
        ),
        degrees=(2, 3), attribute_specs=(_AXIS, *attribute_specs), infer=_quantized, values=_to_values,
        torch=_torch_to,
    )  # fmt: skip


def _from(
    since: int, dtypes: tuple[str, ...], *attribute_specs: AttributeSpec, blocks: bool = False
) -> OperatorSpec:
    return OperatorSpec(
        "DequantizeLinear", since, dtypes=dtypes, within=full_range,
        plan=lambda context: _Grid(_spread(context, blocks), context.dtype),
        input_specs=(
            PRIMARY_INPUT,
            ConstantInput(lambda context: scales(context, context.plan.shape)),
            ConstantInput(lambda context: zeros(context, context.plan.dtype, context.plan.shape)),
        ),
        degrees=(2, 3), attribute_specs=(_AXIS, *attribute_specs), torch=_torch_from,
        infer=_restored, values=_from_values,
    )  # fmt: skip


_SATURATE = AttributeSpec("saturate", Choice(1), omit=0.9, default=1)
_OUTPUT = planned_attribute("output_dtype", 0)
_PRECISION = AttributeSpec("precision", Choice(1), omit=0.9, default=0)


# DynamicQuantizeLinear
def _dynamic(context: NodeContext) -> tuple[TensorType, ...]:
    return (TensorType("uint8", context.shape), TensorType("float32", ()), TensorType("uint8", ()))


def _dynamic_values(context: NodeContext) -> tuple[Interval, ...]:
    """The scale is the range, zero included, over 255; elements are positive, so the zero point is 0."""
    low, high = context.range(0)
    return (FULL_RANGES["uint8"], Interval(low / 255 * 0.99, high / 255 * 1.01), Interval(0, 1))


register(
    _to(13, ("float32", "int32"), BYTES),
    _to(19, ("float32", "float16", "bfloat16"), BYTES, _SATURATE),
    _to(21, ("float32", "float16", "bfloat16"), (*BYTES, *_SHORTS), _SATURATE, _BLOCK, _OUTPUT, blocks=True),
    _to(23, ("float32", "float16", "bfloat16"), (*BYTES, *_SHORTS), _SATURATE, _BLOCK, _OUTPUT, _PRECISION,
        blocks=True),
    _from(13, (*BYTES, "int32")),
    _from(21, (*BYTES, *_SHORTS, "int32"), _BLOCK, blocks=True),
    _from(23, (*BYTES, *_SHORTS, "int32"), _BLOCK,
          AttributeSpec("output_dtype", Choice(0, 1), omit=0.8, default=0), blocks=True),
    OperatorSpec("DynamicQuantizeLinear", 11, dtypes=("float32",), within=within(0.1, 1e6),
             infer=_dynamic, values=_dynamic_values),
)  # fmt: skip
