"""Operator groups common in networks, which compilers fuse or replace."""

from __future__ import annotations

import math

from fuzzing.graph.intervals import Interval, add, hull, widen, within
from fuzzing.graph.ir import Builder
from fuzzing.graph.operator_spec import PRIMARY_INPUT, ConstantInput, DataInput, NodeContext, OperatorSpec
from fuzzing.graph.operators import register_pattern
from fuzzing.graph.operators.pattern_builder import PatternBuilder
from fuzzing.graph.operators.products import columns
from fuzzing.graph.operators.quantization import scales, zeros
from fuzzing.graph.operators.sliding_windows import NARROW
from fuzzing.graph.operators.sum_bounds import total
from fuzzing.graph.types import Shape, TensorType

_STEADY = within(-30, 30)
_GAIN = Interval(-4, 4)
_EPSILON = 1e-3
#: How large a sum inside a pattern may be: so that three multiplied fit into float16, whatever comes then.
_INSIDE = 8.0


def _edges(context: NodeContext) -> tuple[int, ...]:
    return tuple([edge for edge in context.edges if edge is not None])


def _weight(terms: int, largest: float) -> Interval:
    """Small enough that a sum of this many products stays small."""
    most = min(4.0, _INSIDE / (terms * max(1.0, largest)))
    return Interval(-most, most)


def _normalize(builder: Builder, context: NodeContext) -> tuple[int, ...]:
    """(x - mean) / sqrt(mean of squares + ε) · scale + bias over the last axis."""
    x, gain, bias = _edges(context)
    make, last = PatternBuilder(builder, context.dtype), context.rank - 1
    away = make.node("Sub", x, make.mean(x, last))
    if context.rng.chance(0.5):
        squares = make.node("Pow", away, make.number(2.0))
    else:
        squares = make.node("Mul", away, away)
    spread = make.node("Sqrt", make.node("Add", make.mean(squares, last), make.number(_EPSILON)))
    scaled = make.node("Mul", make.node("Div", away, spread), gain)
    return (make.node("Add", scaled, bias),)


def _normalized(context: NodeContext) -> Interval:
    most = math.sqrt(context.dims(0)[-1]) * context.range(1).largest
    return add(widen(Interval(-most, most), 1e-2), context.range(2))


def _gelu_of_erf(builder: Builder, context: NodeContext) -> tuple[int, ...]:
    """x/2 · (1 + erf(x/√2))."""
    (x,) = _edges(context)
    make = PatternBuilder(builder, context.dtype)
    erf = make.node("Erf", make.node("Div", x, make.number(math.sqrt(2))))
    gate = make.node("Add", erf, make.number(1.0))
    return (make.node("Mul", make.node("Mul", x, gate), make.number(0.5)),)


def _gelu_of_tanh(builder: Builder, context: NodeContext) -> tuple[int, ...]:
    """x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³)))."""
    (x,) = _edges(context)
    make = PatternBuilder(builder, context.dtype)
    cube = make.node("Mul", make.node("Mul", x, x), x)
    inner = make.node("Add", x, make.node("Mul", cube, make.number(0.044715)))
    tanh = make.node("Tanh", make.node("Mul", inner, make.number(math.sqrt(2 / math.pi))))
    half = make.node("Mul", x, make.number(0.5))
    return (make.node("Mul", half, make.node("Add", tanh, make.number(1.0))),)


def _gelu(context: NodeContext) -> Interval:
    """Its least value is about -0.17."""
    low, high = context.range(0)
    return widen(Interval(-0.2 if low < 0 else 0.0, max(high, 0.0)), 1e-2)


def _gated(builder: Builder, context: NodeContext) -> tuple[int, ...]:
    """(silu(x·W) ⊙ x·V)·U."""
    x, gate, up, down = _edges(context)
    make = PatternBuilder(builder, context.dtype)
    gated = make.node("MatMul", x, gate)
    active = make.node("Mul", gated, make.node("Sigmoid", gated))
    return (make.node("MatMul", make.node("Mul", active, make.node("MatMul", x, up)), down),)


def _hidden(context: NodeContext) -> Shape:
    size = context.dims(0)[-1]
    return (size, max(1, min(2 * size, context.limits.max_dim)))


def _gated_values(context: NodeContext) -> Interval:
    size, hidden = context.dims(1)
    one = total(context.dtype, size, context.range(0), context.range(1)).largest
    other = total(context.dtype, size, context.range(0), context.range(2)).largest
    return total(context.dtype, hidden, Interval(-one * other, one * other), context.range(3))


def _residual(builder: Builder, context: NodeContext) -> tuple[int, ...]:
    """relu(x + bn(conv(relu(bn(conv(x)))))), the convolutions 3 wide with pads of 1."""
    x, first, second, *normal = _edges(context)
    make, count = PatternBuilder(builder, context.dtype), context.rank - 2
    pads, y = (1,) * (2 * count), x
    for weight in (first, second):
        y = make.node("Conv", y, weight, pads=pads, kernel_shape=(3,) * count)
        y = make.node("BatchNormalization", y, *normal)
        if weight == first:
            y = make.node("Relu", y)
    return (make.node("Relu", make.node("Add", x, y)),)


def _filters(context: NodeContext) -> Shape:
    channels = context.dims(0)[1]
    return (channels, channels, *(3,) * (context.rank - 2))


def _channels(context: NodeContext) -> Shape:
    return (context.dims(0)[1],)


def _convolve_within(context: NodeContext, largest: float) -> Interval:
    channels, _, *kernel = _filters(context)
    return _weight((channels or 1) * math.prod(length or 1 for length in kernel), largest)


def _batch(context: NodeContext, inner: float) -> float:
    away = (inner + context.range(5).largest) / math.sqrt(context.range(6).low)
    return away * context.range(3).largest + context.range(4).largest


def _residual_values(context: NodeContext) -> Interval:
    terms = math.prod(context.dims(1)[1:])
    first = _batch(context, terms * context.range(0).largest * context.range(1).largest)
    second = _batch(context, terms * first * context.range(2).largest)
    return widen(Interval(0.0, max(0.0, context.range(0).high) + second), 1e-2)


def _squeeze(builder: Builder, context: NodeContext) -> tuple[int, ...]:
    """X ⊙ sigmoid(W·relu(V·mean(x))), as convolutions of one point."""
    x, down, up = _edges(context)
    make = PatternBuilder(builder, context.dtype)
    inner = make.node("Relu", make.node("Conv", make.node("GlobalAveragePool", x), down))
    return (make.node("Mul", x, make.node("Sigmoid", make.node("Conv", inner, up))),)


def _point(context: NodeContext) -> tuple[int, ...]:
    return (1,) * (context.rank - 2)


def _quantized(builder: Builder, context: NodeContext) -> tuple[int, ...]:
    """A product of two tensors that pass through eight bits, as quantizers write it."""
    x, step, zero, weight, other = _edges(context)
    make, pairs = PatternBuilder(builder, context.dtype), []
    for edge, parameters in ((x, (step, zero)), (weight, (other,))):
        pairs.append(
            make.node("DequantizeLinear", make.node("QuantizeLinear", edge, *parameters), *parameters)
        )
    return (make.node("MatMul", *pairs),)


def _quantized_values(context: NodeContext) -> Interval:
    """255 steps at most, of at most half a unit each by the scales drawn."""
    inner = context.dims(0)[-1]
    most = (
        min(context.range(0).largest + 1.0, 255 * 0.5)
        * min(context.range(3).largest + 1.0, 255 * 0.5)
        * inner
    )
    return widen(Interval(-most, most))


def _matrix(context: NodeContext) -> Shape:
    *batch, rows, inner = context.dims(0)
    return (inner, columns(context, rows * math.prod(batch), inner))


def _product(context: NodeContext) -> tuple[TensorType, ...]:
    return (TensorType(context.dtype, (*context.shape[:-1], context.dims(3)[-1])),)


_PICTURES = (3, 4, 5)
_ANY = tuple(range(1, 9))
_MATRICES = tuple(range(2, 9))

register_pattern(
    OperatorSpec("pattern.LayerNormalization", 13, dtypes=NARROW, ranks=_ANY, within=_STEADY,
                 expand=_normalize,
                 input_specs=(PRIMARY_INPUT,
                              DataInput(lambda context: context.shape[-1:], within=lambda context: _GAIN),
                              DataInput(lambda context: context.shape[-1:], within=lambda context: _GAIN)),
                 values=_normalized),
    OperatorSpec("pattern.Gelu", 13, dtypes=NARROW, within=within(-15, 15), expand=_gelu_of_erf,
                 values=_gelu),
    OperatorSpec("pattern.GeluTanh", 13, dtypes=NARROW, within=within(-15, 15), expand=_gelu_of_tanh,
             values=_gelu),
    OperatorSpec("pattern.SwiGLU", 13, dtypes=NARROW, ranks=_MATRICES, within=_STEADY, expand=_gated,
             input_specs=(PRIMARY_INPUT, DataInput(_hidden,
                                                   within=lambda context: _weight(context.dims(0)[-1],
                                                                                  context.range(0).largest)),
                    DataInput(_hidden,
                              within=lambda context: _weight(context.dims(0)[-1], context.range(0).largest)),
                    DataInput(lambda context: _hidden(context)[::-1],
                         within=lambda context: _weight(_hidden(context)[1] or 1, 1.0))),
             values=_gated_values),
    OperatorSpec("pattern.Residual", 13, dtypes=NARROW, ranks=_PICTURES, within=_STEADY, expand=_residual,
                 input_specs=(PRIMARY_INPUT,
                              DataInput(_filters,
                                        within=lambda context: _convolve_within(context,
                                                                                context.range(0).largest)),
                              DataInput(_filters, within=lambda context: _convolve_within(context, 30.0)),
                              DataInput(_channels, within=lambda context: Interval(-1, 1)),
                              DataInput(_channels, within=lambda context: Interval(-1, 1)),
                              DataInput(_channels, within=lambda context: Interval(-1, 1)),
                              DataInput(_channels, within=lambda context: Interval(0.1, 2))),
                 values=_residual_values),
    OperatorSpec("pattern.SqueezeExcite", 13, dtypes=NARROW, ranks=_PICTURES, within=_STEADY, expand=_squeeze,
                 input_specs=(PRIMARY_INPUT,
                              DataInput(lambda context: (max(1, context.dims(0)[1] // 2), context.dims(0)[1],
                                                         *_point(context)), within=lambda context: _GAIN),
                              DataInput(lambda context: (context.dims(0)[1], max(1, context.dims(0)[1] // 2),
                                                         *_point(context)),
                                        within=lambda context: _weight(context.dims(0)[1], 1.0))),
                 values=lambda context: widen(hull((context.range(0), Interval(0, 0))))),
    OperatorSpec("pattern.QuantizedMatMul", 13, dtypes=("float32",), ranks=_MATRICES, within=_STEADY,
             expand=_quantized, infer=_product, values=_quantized_values,
             input_specs=(PRIMARY_INPUT, ConstantInput(scales), ConstantInput(lambda context: zeros(context,
                                                                                                    "uint8")),
                    DataInput(_matrix, within=lambda context: _STEADY(context.x)), ConstantInput(scales))),
)  # fmt: skip
