"""Fourier transforms, windows and the mel scale."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fuzzing.graph.attribute_domains import Choice, planned_attribute
from fuzzing.graph.constants import make_scalar
from fuzzing.graph.intervals import Interval, widen
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
from fuzzing.graph.operators.sum_bounds import factor, max_output_elements, summands, total
from fuzzing.graph.types import FLOATS, Dim, Shape, TensorType
from fuzzing.rng import Rng

_UNIT = Interval(-1e-3, 1.001)  # Blackman's window touches zero from below by rounding


# DFT
def _signal(rng: Rng, limits: GraphLimits) -> tuple[int, ...]:
    lengths = [rng.between(1, max(1, limits.max_dim)) for _ in range(rng.between(2, 3))]
    return (*lengths, rng.between(1, 2))


def _transform(context: NodeContext) -> tuple[int, int]:
    """Draws an axis and the length of the transform, which are the plan."""
    rng, given, shape = context.rng, context.attributes, context.dims(0)
    last = context.rank - 2
    if context.opset >= 20:
        axis = rng.between(0, last) if context.degree > 2 else last
    else:
        axis = rng.between(0, last) if rng.chance(0.5) else 1
        if axis != 1 or rng.chance(0.2):
            given["axis"] = axis - context.rank if rng.chance(0.2) else axis
    if rng.chance(0.6):
        kind = rng.choice(("inverse", "onesided"))
        if kind == "inverse" or shape[-1] == 1:  # one half determines the whole only for real numbers
            given[kind] = rng.between(0, 1)
    others = context.x.elements // shape[axis]
    most = max(shape[axis], min(context.limits.max_dim, max_output_elements(context) // (2 * others)))
    return axis, rng.between(1, most)


def _axis(context: NodeContext) -> int:
    if context.opset < 20:
        return context.axis()
    axis = context.numbers(2)[0] if context.given(2) else -2
    return axis + context.rank if axis < 0 else axis


def _length(context: NodeContext) -> int:
    return context.numbers(1)[0] if context.given(1) else context.dims(0)[_axis(context)]


def _transformed(context: NodeContext) -> tuple[TensorType, ...]:
    axis, length, parts = _axis(context), _length(context), 2
    if context.get("onesided") and context.get("inverse"):  # from half a spectrum back to real numbers
        length, parts = length if context.given(1) else 2 * (length - 1), 1
    elif context.get("onesided"):
        length = length // 2 + 1
    return (TensorType(context.dtype, (*context.shape[:axis], length, *context.shape[axis + 1 : -1], parts)),)


def _transformed_values(context: NodeContext) -> Interval:
    """Of each of n complex numbers both parts count, rotated by up to an eighth turn."""
    count = min(_length(context), context.dims(0)[_axis(context)])
    most = count * math.sqrt(2) * context.range(0).largest
    if context.get("inverse"):
        most /= _length(context)
    return widen(Interval(-most, most), 1e-2)


def _torch_transform(context: NodeContext, names: Sequence[str]) -> str:
    data = f"{names[0]}.select(-1, 0)" if context.dims(0)[-1] == 1 else f"torch.view_as_complex({names[0]})"
    name = "rfft" if context.get("onesided") else "ifft" if context.get("inverse") else "fft"
    return (
        f"torch.view_as_real(torch.fft.{name}({data}, {_length(context)}, {_axis(context)}).resolve_conj())"
    )


def _integer(context: NodeContext, value: int) -> Constant:
    return make_scalar(context.rng.choice(("int64", "int64", "int32")), value)


_LENGTH = ConstantInput(lambda context: _integer(context, context.plan[1]), omit=0.5)
_SHARED = (planned_attribute("inverse", 0), planned_attribute("onesided", 0))


def _complex(shape: tuple[int, ...]) -> bool:
    return shape[-1] in (1, 2)


# STFT
def _frames(context: NodeContext) -> tuple[int, int]:
    length = context.dims(0)[1]
    size = context.rng.between(1, length)
    # Frames that overlap repeat elements; so many as there is room for.
    most = max(1, max_output_elements(context) // (context.dims(0)[0] * (2 * size + 2)))
    least = max(1, -(-(length - size) // most))
    return size, context.rng.between(least, max(least, length))


def _frame(context: NodeContext) -> int | None:
    if context.given(3):
        return context.numbers(3)[0]
    return context.dims(2)[0] if context.given(2) else None


def _stft(context: NodeContext) -> tuple[TensorType, ...]:
    batch, length, *_ = context.dims(0)
    size = _frame(context)
    if size is None:
        return (TensorType(context.dtype, (batch, None, None, 2)),)
    bins: Dim = size // 2 + 1 if context.get("onesided") else size
    frames = (length - size) // context.numbers(1)[0] + 1
    return (TensorType(context.dtype, (batch, frames, bins, 2)),)


def _stft_values(context: NodeContext) -> Interval:
    factors = (context.range(0), context.range(2)) if context.given(2) else (context.range(0),)
    most = total(context.dtype, _frame(context) or context.dims(0)[1], *factors).largest
    return widen(Interval(-most, most), 1e-2)


def _torch_stft(context: NodeContext, names: Sequence[str]) -> str:
    window = names[2] if context.given(2) else f"{names[0]}.new_ones({_frame(context)})"
    return (
        f"torch.view_as_real(torch.stft({names[0]}.squeeze(2), {_frame(context)}, {context.numbers(1)[0]}, "
        f"window={window}, center=False, onesided={bool(context.get('onesided'))}, "
        f"return_complex=True).transpose(1, 2))"
    )


def _real(rng: Rng, limits: GraphLimits) -> tuple[int, ...]:
    return (rng.between(1, max(1, limits.max_dim)), rng.between(2, max(8, limits.max_dim)), 1)


def _window_shape(context: NodeContext) -> Shape:
    return (context.plan[0],)


def _window(name: str, torch: str) -> OperatorSpec:
    """At least two elements: the formula of a symmetric window divides by one less."""
    return OperatorSpec(name, 17, primary=-1,
                        input_specs=(ConstantInput(lambda context: _integer(context,
                                                                            context.rng.between(2,
                                                                                                max(2,
                                                                                                    context.limits.max_dim)))),),
                        attribute_specs=(AttributeSpec("periodic", Choice(0, 1), omit=0.5, default=1),
                                         AttributeSpec("output_datatype", Choice(1), omit=0.8, default=1)),
                        infer=lambda context: (TensorType("float32", (context.numbers(0)[0],)),),
                        values=lambda context: _UNIT,
                        torch=lambda context, names: torch.format(context.numbers(0)[0],
                                                                  bool(context.get("periodic"))))  # fmt: skip


# MelWeightMatrix
_RATE = 8192


def _mel(context: NodeContext) -> tuple[TensorType, ...]:
    return (TensorType("float32", (context.numbers(1)[0] // 2 + 1, context.numbers(0)[0])),)


#: Up to half the rate, which is a mel band's upper edge only where the length is even.
def _whole(*values: int) -> ConstantInput:
    return ConstantInput(lambda context: make_scalar("int64", context.rng.choice(values)))


def _hertz(low: float, high: float) -> ConstantInput:
    return ConstantInput(lambda context: make_scalar("float32", context.rng.choice((low, high))))


register(
    OperatorSpec("DFT", 17, ranks=(3, 4, 5), takes=_complex, draw_shape=_signal, within=summands,
                 plan=_transform, input_specs=(PRIMARY_INPUT, _LENGTH), degrees=(1, 2),
                 attribute_specs=(planned_attribute("axis", 1), *_SHARED), infer=_transformed,
                 values=_transformed_values, torch=_torch_transform),
    OperatorSpec("DFT", 20, ranks=(3, 4, 5), takes=_complex, draw_shape=_signal, within=summands,
                 plan=_transform,
                 input_specs=(PRIMARY_INPUT, _LENGTH,
                              ConstantInput(lambda context: make_scalar("int64", context.plan[0]))),
                 degrees=(1, 2, 3), attribute_specs=_SHARED, infer=_transformed, values=_transformed_values,
                 torch=_torch_transform),
    OperatorSpec("STFT", 17, dtypes=FLOATS, ranks=(3,), takes=lambda shape: shape[1] > 1 == shape[2],
             draw_shape=_real, within=summands, plan=_frames,
             input_specs=(PRIMARY_INPUT, ConstantInput(lambda context: make_scalar("int64", context.plan[1])),
                    DataInput(_window_shape, within=lambda context: factor(context, context.plan[0]),
                              omit=0.3),
                    ConstantInput(lambda context: make_scalar("int64", context.plan[0]))),
             degrees=(3, 4),
             # Never left out: the default is 1, but onnx's own shape inference takes it for 0.
             attribute_specs=(AttributeSpec("onesided", Choice(0, 1), default=1),),
             infer=_stft, values=_stft_values, torch=_torch_stft),
    _window("HannWindow", "torch.hann_window({0}, {1})"),
    # ONNX has 25/46 where torch has 0.54 by default.
    _window("HammingWindow", "torch.hamming_window({0}, {1}, 25 / 46, 21 / 46)"),
    _window("BlackmanWindow", "torch.blackman_window({0}, {1})"),
    OperatorSpec("MelWeightMatrix", 17, primary=-1, infer=_mel, values=lambda context: _UNIT,
             input_specs=(_whole(2, 3, 4, 8), _whole(16, 32, 64), _whole(_RATE), _hertz(0.0, 100.0),
                    _hertz(_RATE / 2, _RATE / 4)),
             attribute_specs=(AttributeSpec("output_datatype", Choice(1), omit=0.8, default=1),)),
)  # fmt: skip
