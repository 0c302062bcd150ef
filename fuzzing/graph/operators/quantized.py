"""Products and convolutions of quantized numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fuzzing.graph.constants import make_scalar
from fuzzing.graph.intervals import FULL_RANGES, Interval, full_range
from fuzzing.graph.ir import Constant
from fuzzing.graph.operator_spec import PRIMARY_INPUT, ConstantInput, DataInput, NodeContext, OperatorSpec
from fuzzing.graph.operators import register
from fuzzing.graph.operators.convolution import ATTRIBUTE_SPECS, convolved, terms, torch_text, weigh
from fuzzing.graph.operators.products import product, second
from fuzzing.graph.operators.quantization import BYTES, EXACT_SCALES, less_zero, scales, zeros
from fuzzing.graph.operators.sum_bounds import total
from fuzzing.graph.types import Shape, TensorType


def _other_byte(context: NodeContext) -> str:
    """Mostly the primary input's type: runtimes do not support all pairs."""
    return context.dtype if context.rng.chance(0.6) else context.rng.choice(BYTES)


#: What every byte may be, signed or not.
_BYTE = Interval(0, 127)


def _multiplied(context: NodeContext, other: int) -> Shape:
    return product(context.dims(0), context.dims(other))


def _integer_product(context: NodeContext) -> Interval:
    return total("int32", context.dims(0)[-1], less_zero(context, 0, 2), less_zero(context, 1, 3))


def _integer_convolution(context: NodeContext) -> Interval:
    factors = less_zero(context, 0, 2), less_zero(context, 1, 3)
    return total("int32", terms(context.dims(1)), *factors, fewer=True)


def _operand(shape: Callable[[NodeContext], Shape], dtype: Callable[[NodeContext], str]) -> DataInput:
    return DataInput(shape, dtype=dtype, within=lambda context: _BYTE)


def _matrix(context: NodeContext) -> Shape:
    return second(context, vectors=False)


#: A scale for a whole tensor.
_SINGLE = ConstantInput(lambda context: make_scalar("float32", context.rng.choice(EXACT_SCALES)))


def _point(of: int, omit: float = 0.0) -> ConstantInput:
    return ConstantInput(lambda context: zeros(context, context.type(of).dtype), omit=omit)


def _signed_with_signed(context: NodeContext) -> str:
    """Onnxruntime has no kernel for signed times unsigned with a quantized result."""
    return context.dtype if context.dtype == "int8" else _other_byte(context)


def _filter_scales(context: NodeContext) -> Constant:
    return scales(context, (context.plan[0],) if context.rng.chance(0.5) else (), among=EXACT_SCALES)


def _filter_points(context: NodeContext) -> Constant:
    return zeros(context, context.type(3).dtype, context.dims(4))


def _torch_shifted(context: NodeContext, names: Sequence[str]) -> tuple[str, str]:
    wide = [f"{name}.to(torch.int32)" for name in names]
    one, other = [
        f"({wide[place]} - {wide[place + 2]})" if context.given(place + 2) else wide[place]
        for place in (0, 1)
    ]
    return one, other


def _torch_product(context: NodeContext, names: Sequence[str]) -> str:
    one, other = _torch_shifted(context, names)
    return f"{one} @ {other}"


def _torch_convolution(context: NodeContext, names: Sequence[str]) -> str:
    """In double precision, as torch convolves no integers; all sums are exact in it."""
    one, other = _torch_shifted(context, names)
    return f"{torch_text(context, f'{one}.double()', f'{other}.double()', None)}.to(torch.int32)"


def _typed(shape: Callable[[NodeContext], Shape]) -> Callable[[NodeContext], tuple[TensorType, ...]]:
    return lambda context: (TensorType("int32", shape(context)),)


def _result(shape: Callable[[NodeContext], Shape]) -> Callable[[NodeContext], tuple[TensorType, ...]]:
    """A quantized result has the type of its zero point, the last parameter."""
    return lambda context: (TensorType(context.type(7).dtype, shape(context)),)


def _saturated(context: NodeContext) -> Interval:
    return FULL_RANGES[context.type(7).dtype]


_MATRICES = tuple(range(2, 9))
_FILTERS = 3  # the position of the weight

register(
    OperatorSpec("MatMulInteger", 10, dtypes=BYTES, ranks=_MATRICES, within=full_range,
             input_specs=(PRIMARY_INPUT, _operand(_matrix, _other_byte), _point(0, omit=0.3), _point(1)),
             degrees=(2, 3, 4), values=_integer_product, torch=_torch_product,
             infer=_typed(lambda context: _multiplied(context, 1))),
    OperatorSpec("ConvInteger", 10, dtypes=BYTES, ranks=(3, 4, 5), within=full_range, plan=weigh,
                 attribute_specs=ATTRIBUTE_SPECS,
                 input_specs=(PRIMARY_INPUT, _operand(lambda context: context.plan, _other_byte),
                              _point(0, omit=0.3), _point(1)), degrees=(2, 3, 4), infer=_typed(convolved),
                 values=_integer_convolution, torch=_torch_convolution),
    OperatorSpec("QLinearMatMul", 10, dtypes=BYTES, ranks=_MATRICES, within=full_range,
             input_specs=(PRIMARY_INPUT, _SINGLE, _point(0), _operand(_matrix, _signed_with_signed),
                    _SINGLE, _point(3), _SINGLE, _point(0)),
             infer=_result(lambda context: _multiplied(context, 3)), values=_saturated),
    OperatorSpec("QLinearConv", 10, dtypes=BYTES, ranks=(3, 4, 5), within=full_range, plan=weigh,
                 attribute_specs=ATTRIBUTE_SPECS,
                 input_specs=(PRIMARY_INPUT, _SINGLE, _point(0),
                              _operand(lambda context: context.plan, _signed_with_signed),
                              ConstantInput(_filter_scales), ConstantInput(_filter_points), _SINGLE,
                              _point(0),
                              DataInput(lambda context: (context.dims(_FILTERS)[0],), dtype="int32")),
                 degrees=(8, 9), infer=_result(lambda context: convolved(context, _FILTERS)),
                 values=_saturated),
)  # fmt: skip
