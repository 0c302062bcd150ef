"""Pools: over windows, over whole images, and MaxUnpool."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from fuzzing.graph.attribute_domains import Choice, planned_attribute
from fuzzing.graph.intervals import Interval, full_range, hull, widen
from fuzzing.graph.ir import Constant
from fuzzing.graph.operator_spec import (
    PRIMARY_INPUT,
    AttributeSpec,
    ConstantInput,
    NodeContext,
    OperatorSpec,
    OutputRanges,
    TorchForm,
    int64,
)
from fuzzing.graph.operators import register, sliding_windows
from fuzzing.graph.operators.sliding_windows import NARROW
from fuzzing.graph.operators.sum_bounds import max_output_elements, squared, summands
from fuzzing.graph.types import FLOATS, TensorType

_RANKS = (3, 4, 5)
_INDICES = 0.1  # how often MaxPool gives the indices too


def _pooled(context: NodeContext) -> tuple[TensorType, ...]:
    batch, channels, *space = context.dims(0)
    shape = (batch, channels, *sliding_windows.lengths(context, space, context.get("kernel_shape")))
    return (TensorType(context.dtype, shape), TensorType("int64", shape))[: context.outputs]


def _global(context: NodeContext) -> tuple[TensorType, ...]:
    return (TensorType(context.dtype, (*context.dims(0)[:2], *(1,) * (context.rank - 2))),)


def _draw(context: NodeContext, *, dilated: bool = True, ceiled: bool = True) -> None:
    context.attributes["kernel_shape"] = tuple(sliding_windows.draw(context, dilated=dilated, ceiled=ceiled))


def _draw_largest(context: NodeContext) -> None:
    _draw(context)
    if context.rng.chance(_INDICES):
        context.outputs = 2


def _largest(context: NodeContext) -> tuple[Interval, ...]:
    return (context.range(0), Interval(0, context.x.elements - 1))[: context.outputs]


def _mean(context: NodeContext) -> Interval:
    """Padding counts as zeros, if it is counted."""
    return widen(hull((context.range(0), Interval(0, 0))))


def _norm(context: NodeContext, count: int) -> Interval:
    """Of at most `count` elements, each at most 1, for the p drawn."""
    return widen(Interval(0, context.range(0).largest * count ** (1 / context.get("p"))), 1e-3)


def _frame(context: NodeContext) -> tuple[list[tuple[int, int]], str]:
    space, kernel = context.dims(0)[2:], context.get("kernel_shape")
    strides = tuple(context.get("strides") or (1,) * len(kernel))
    dilations = tuple(context.get("dilations") or (1,) * len(kernel))
    return sliding_windows.paddings(context, space, kernel), f"stride={strides}, dilation={dilations}"


def _torch_largest(context: NodeContext, names: Sequence[str]) -> str:
    pads, steps = _frame(context)
    kernel = tuple(context.get("kernel_shape"))
    data = sliding_windows.torch_pad(names[0], pads, "-float('inf')")
    pooled = f"torch.nn.functional.max_pool{len(kernel)}d({data}, {kernel}, {steps}"
    if context.outputs == 1:
        return f"{pooled})"
    return f"(lambda most, where: (most, {_unpadded(context, pads)}))(*{pooled}, return_indices=True))"


def _unpadded(context: NodeContext, pads: Sequence[tuple[int, int]]) -> str:
    """ONNX's indices into the whole tensor, from torch's into one padded image."""
    space = context.dims(0)[2:]
    planes, ones = math.prod(context.dims(0)[:2]), (1,) * len(space)
    text = f"torch.arange({planes}).reshape({(*context.dims(0)[:2], *ones)}) * {math.prod(space)}"
    outer = inner = 1
    for (begin, end), length in zip(reversed(pads), reversed(space), strict=True):
        text += f" + (where // {outer} % {begin + length + end} - {begin}) * {inner}"
        outer, inner = outer * (begin + length + end), inner * length
    return text


def _sums(context: NodeContext, data: str, name: str) -> str:
    """Sums over windows: a convolution of each channel with ones, as torch's own pools lack dilation."""
    channels, kernel = context.dims(0)[1], context.get("kernel_shape")
    _, steps = _frame(context)
    return (
        f"torch.nn.functional.conv{len(kernel)}d({data}, {name}.new_ones({(channels, 1, *kernel)}), "
        f"{steps}, groups={channels})"
    )


def _torch_mean(context: NodeContext, names: Sequence[str]) -> str:
    """Sums over counts; the counts include the pads if requested, but not what lies behind them."""
    pads, _ = _frame(context)
    data, counted = sliding_windows.torch_pad(names[0], pads), f"torch.ones_like({names[0]})"
    if context.get("count_include_pad"):
        own = pads
        if not context.get("auto_pad").startswith("SAME"):
            count = context.rank - 2
            given = context.get("pads") or (0,) * (2 * count)
            own = list(zip(given[:count], given[count:], strict=True))
        counted = sliding_windows.torch_pad(counted, own, "1.0")
        pads = [(a - c, b - d) for (a, b), (c, d) in zip(pads, own, strict=True)]
    counted = sliding_windows.torch_pad(counted, pads)
    return f"{_sums(context, data, names[0])} / {_sums(context, counted, names[0])}"


def _torch_norm(context: NodeContext, names: Sequence[str]) -> str:
    p = context.get("p")
    data = sliding_windows.torch_pad(f"{names[0]}.abs() ** {p}", _frame(context)[0])
    return f"({_sums(context, data, names[0])}) ** (1 / {p})"


def _unpool(context: NodeContext) -> None:
    """Strides mostly equal the kernel; the output is as long as the windows that gave the input reach."""
    rng, space = context.rng, context.dims(0)[2:]
    left, kernel, strides = max_output_elements(context) // context.x.elements, [], []
    for length in space:
        stride = rng.between(1, min(3, max(1, left)))
        size = rng.between(stride, max(stride, min(3, left)))
        left = left * length // ((length - 1) * stride + size)
        kernel.append(size)
        strides.append(stride)
    context.attributes["kernel_shape"] = tuple(kernel)
    context.attributes["strides"] = tuple(strides)


def _unpooled(context: NodeContext) -> tuple[TensorType, ...]:
    if context.given(2):
        return (TensorType(context.dtype, tuple(context.numbers(2))),)
    kernel = context.get("kernel_shape")
    count = len(kernel)
    strides, pads = context.get("strides") or (1,) * count, context.get("pads") or (0,) * (2 * count)
    space = [
        (length - 1) * strides[axis] - pads[axis] - pads[axis + count] + kernel[axis]
        for axis, length in enumerate(context.dims(0)[2:])
    ]
    return (TensorType(context.dtype, (*context.dims(0)[:2], *space)),)


def _places(context: NodeContext) -> Constant:
    """Distinct positions within each image, flat in the whole output."""
    (type_,) = _unpooled(context)
    batch, channels, *space = type_.lengths
    size, count = math.prod(space), math.prod(context.dims(0)[2:])
    start, step = context.rng.below(size), max(1, size // count)
    one = (start + step * np.arange(count)) % size
    every = one + size * np.arange(batch * channels)[:, None]
    return Constant("int64", every.reshape(context.dims(0)).astype(np.int64))


def _unpooled_shape(context: NodeContext) -> Constant:
    """As long as without it: if longer, onnx's own evaluator puts the elements elsewhere."""
    return int64(*_unpooled(context)[0].lengths)


_CEIL = planned_attribute("ceil_mode", 0)
_DILATIONS = planned_attribute("dilations")
_P = AttributeSpec("p", Choice(1, 2), omit=0.3, default=2)


def _max_pool(since: int, dtypes: tuple[str, ...]) -> OperatorSpec:
    return OperatorSpec("MaxPool", since, dtypes=(*dtypes, "int8", "uint8"), ranks=_RANKS, within=full_range,
                        plan=_draw_largest,
                        attribute_specs=(*sliding_windows.ATTRIBUTE_SPECS, _CEIL, _DILATIONS,
                                         AttributeSpec("storage_order", Choice(0), omit=0.9, default=0)),
                        infer=_pooled, values=_largest, torch=_torch_largest)  # fmt: skip


def _average_pool(since: int, dtypes: tuple[str, ...], dilated: bool) -> OperatorSpec:
    return OperatorSpec(
        "AveragePool", since, dtypes=dtypes, ranks=_RANKS, within=summands,
        plan=lambda context: _draw(context, dilated=dilated),
        attribute_specs=(*sliding_windows.ATTRIBUTE_SPECS, _CEIL, *(_DILATIONS,) * dilated,
                  AttributeSpec("count_include_pad", Choice(0, 1), omit=0.4, default=0)),
        infer=_pooled, values=_mean, torch=_torch_mean,
    )  # fmt: skip


def _lp_pool(since: int, dtypes: tuple[str, ...], late: bool) -> OperatorSpec:
    return OperatorSpec(
        "LpPool", since, dtypes=dtypes, ranks=_RANKS, within=squared,
        plan=lambda context: _draw(context, dilated=late, ceiled=late),
        attribute_specs=(*sliding_windows.ATTRIBUTE_SPECS, *(_CEIL, _DILATIONS) * late, _P),
        infer=_pooled, torch=_torch_norm,
        values=lambda context: _norm(context, math.prod(context.get("kernel_shape"))),
    )  # fmt: skip


def _whole_image(
    name: str,
    since: int,
    dtypes: tuple[str, ...],
    domain: Callable[[TensorType], Interval],
    values: OutputRanges,
    torch: TorchForm,
    *attribute_specs: AttributeSpec,
) -> OperatorSpec:
    return OperatorSpec(name, since, dtypes=dtypes, ranks=_RANKS, values=values, infer=_global, torch=torch,
                    within=domain, attribute_specs=attribute_specs)  # fmt: skip


def _over(text: str) -> TorchForm:
    return lambda context, names: text.format(names[0], tuple(range(2, context.rank)), context.get("p"))


for _since, _dtypes in ((1, NARROW), (22, FLOATS)):
    register(
        _max_pool(max(_since, 12), _dtypes),
        _whole_image("GlobalMaxPool", _since, _dtypes, full_range, lambda context: context.range(0),
                     _over("{0}.amax({1}, keepdim=True)")),
        _whole_image("GlobalAveragePool", _since, _dtypes, summands, lambda context: widen(context.range(0)),
                     _over("{0}.mean({1}, keepdim=True)")),
        _whole_image("GlobalLpPool", max(_since, 2), _dtypes, squared,
                     lambda context: _norm(context, math.prod(context.dims(0)[2:])),
                     _over("({0}.abs() ** {2}).sum({1}, keepdim=True) ** (1 / {2})"), _P),
        OperatorSpec("MaxUnpool", max(_since, 11), dtypes=_dtypes, ranks=_RANKS, within=full_range,
                     plan=_unpool,
                     input_specs=(PRIMARY_INPUT, ConstantInput(_places), ConstantInput(_unpooled_shape)),
                     degrees=(2, 3),
                     attribute_specs=(planned_attribute("kernel_shape"), planned_attribute("strides"),
                                      planned_attribute("pads")), infer=_unpooled,
                     values=lambda context: hull((context.range(0), Interval(0, 0)))),
    )  # fmt: skip
register(
    _average_pool(11, NARROW, False),
    _average_pool(19, NARROW, True),
    _average_pool(22, FLOATS, True),
    _lp_pool(11, NARROW, False),
    _lp_pool(18, NARROW, True),
    _lp_pool(22, FLOATS, True),
)
