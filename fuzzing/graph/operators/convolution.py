"""Convolutions: plain, transposed, quantized."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from fuzzing.graph.attribute_domains import planned_attribute
from fuzzing.graph.intervals import Interval, add
from fuzzing.graph.operator_spec import PRIMARY_INPUT, DataInput, NodeContext, OperatorSpec
from fuzzing.graph.operators import register, sliding_windows
from fuzzing.graph.operators.sliding_windows import NARROW
from fuzzing.graph.operators.sum_bounds import addend, factor, max_output_elements, multiplied, total
from fuzzing.graph.types import FLOATS, Shape, TensorType

_RANKS = (3, 4, 5)
_DIVISORS = 8


def group(context: NodeContext) -> int:
    """The number of channel groups: mostly one, else all, else a small divisor."""
    channels = context.dims(0)[1]
    some = 1 + context.rng.below(min(channels, _DIVISORS))
    return context.rng.choice((1, 1, channels, some if channels % some == 0 else 1))


def weigh(context: NodeContext) -> tuple[int, ...]:
    """Draws windows and groups; the plan is the shape of the weight."""
    kernel = sliding_windows.draw(context)
    batch, channels, *space = context.dims(0)
    groups = group(context)
    if groups > 1 or context.rng.chance(0.2):
        context.attributes["group"] = groups
    if context.rng.chance(0.7):
        context.attributes["kernel_shape"] = tuple(kernel)
    most = min(context.limits.max_dim, max_output_elements(context) // (batch * math.prod(space)))
    filters = groups * context.rng.between(1, max(1, most // groups))
    return (filters, channels // groups, *kernel)


def convolved(context: NodeContext, weight: int = 1) -> tuple[int, ...]:
    """The output shape of a convolution."""
    batch, _, *space = context.dims(0)
    filters, _, *kernel = context.dims(weight)
    return (batch, filters, *sliding_windows.lengths(context, space, kernel))


def terms(shape: Sequence[int]) -> int:
    """The number of products an element sums, by the shape of the weight."""
    return math.prod(shape[1:])


def _values(context: NodeContext) -> Interval:
    found = total(context.dtype, terms(context.dims(1)), context.range(0), context.range(1), fewer=True)
    return add(found, context.range(2)) if context.given(2) else found


def torch_text(context: NodeContext, data: str, weight: str, bias: str | None) -> str:
    """A convolution in torch by the second input's weights; padded separately, as pads may be uneven."""
    space, kernel = context.dims(0)[2:], context.dims(1)[2:]
    count = len(space)
    data = sliding_windows.torch_pad(data, sliding_windows.paddings(context, space, kernel))
    strides = tuple(context.get("strides") or (1,) * count)
    dilations = tuple(context.get("dilations") or (1,) * count)
    return (
        f"torch.nn.functional.conv{count}d({data}, {weight}, {bias}, stride={strides}, "
        f"dilation={dilations}, groups={context.get('group')})"
    )


def _torch(context: NodeContext, names: Sequence[str]) -> str:
    return torch_text(context, names[0], names[1], names[2] if context.given(2) else None)


ATTRIBUTE_SPECS = (
    planned_attribute("group", 1),
    planned_attribute("dilations"),
    *sliding_windows.ATTRIBUTE_SPECS,
)


def _conv(since: int, dtypes: tuple[str, ...]) -> OperatorSpec:
    return OperatorSpec("Conv", since, dtypes=dtypes, ranks=_RANKS, degrees=(2, 3),
                        attribute_specs=ATTRIBUTE_SPECS, plan=weigh, within=multiplied,
                        input_specs=(PRIMARY_INPUT,
                                     DataInput(lambda context: context.plan,
                                               within=lambda context: factor(context, terms(context.plan))),
                                     DataInput(lambda context: (context.dims(1)[0],), within=addend)),
                        infer=lambda context: (TensorType(context.dtype, convolved(context)),),
                        values=_values, torch=_torch)  # fmt: skip


class _Axis(NamedTuple):
    """The choices for one spatial axis of a transposed convolution; `longest`: its length without pads."""

    kernel: int
    stride: int
    dilation: int
    extra: int
    begin: int
    end: int
    longest: int


def _spread(context: NodeContext) -> Shape:
    """Draws the attributes of a transposed convolution; the plan is the shape of the weight.

    Growth is drawn within the size limit: each axis in turn, the later ones at their present lengths.
    """
    rng, given = context.rng, context.attributes
    batch, channels, *space = context.dims(0)
    groups = group(context)
    left = max_output_elements(context) // (
        batch * math.prod(space)
    )  # so many times may one channel's elements be there
    per_group = rng.between(1, max(1, min(context.limits.max_dim, left) // groups))
    left //= groups * per_group
    form = rng.choice(("", "", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER", "shape"))
    axes = []
    for length in space:
        axis = _axis(context, length, left * length, form.startswith("SAME"))
        left = left * length // axis.longest
        axes.append(axis)
    given["strides"] = tuple([axis.stride for axis in axes])
    if any(axis.dilation > 1 for axis in axes):
        given["dilations"] = tuple([axis.dilation for axis in axes])
    if form in ("", "NOTSET") and any(axis.begin or axis.end for axis in axes):
        given["pads"] = (*[axis.begin for axis in axes], *[axis.end for axis in axes])
    if any(axis.extra for axis in axes):
        given["output_padding"] = tuple([axis.extra for axis in axes])
    if form == "shape":
        given["output_shape"] = tuple([axis.longest - axis.begin - axis.end for axis in axes])
    elif form:
        given["auto_pad"] = form
    if groups > 1 or rng.chance(0.2):
        given["group"] = groups
    if rng.chance(0.7):
        given["kernel_shape"] = tuple([axis.kernel for axis in axes])
    return (channels, per_group, *[axis.kernel for axis in axes])


def _axis(context: NodeContext, length: int, most: int, same: bool) -> _Axis:
    rng = context.rng
    stride = rng.between(1, min(3, max(1, most // length)))
    # With SAME the kernel covers the stride: else compilers disagree on what is missing.
    low = stride if same else 1
    high = max(low, min(context.limits.max_dim, most - stride * length + 1))
    kernel = rng.between(low, high)
    dilation = rng.between(1, 2) if kernel > 1 and 2 * kernel - 1 <= high else 1
    reach = dilation * (kernel - 1) + 1
    extra = rng.below(stride) if not same and rng.chance(0.3) else 0
    begin = rng.below(reach) if rng.chance(0.5) else 0
    end = rng.below(reach - begin) if rng.chance(0.5) else 0
    return _Axis(kernel, stride, dilation, extra, begin, end, stride * (length - 1) + reach + extra)


def _uncut(context: NodeContext, axis: int) -> int:
    stride = (context.get("strides") or (1,) * (axis + 1))[axis]
    dilation = (context.get("dilations") or (1,) * (axis + 1))[axis]
    return int(stride * (context.dims(0)[axis + 2] - 1) + dilation * (context.dims(1)[axis + 2] - 1) + 1)


def _cuts(context: NodeContext) -> list[tuple[int, int]]:
    """The length cut before each axis, and the length that remains."""
    count = context.rank - 2
    extra = context.get("output_padding") or (0,) * count
    pads = context.get("pads") or (0,) * (2 * count)
    auto, shape = context.get("auto_pad"), context.get("output_shape")
    found = []
    for axis in range(count):
        full = _uncut(context, axis) + extra[axis]
        if shape or auto.startswith("SAME"):
            stride = (context.get("strides") or (1,) * count)[axis]
            out = shape[axis] if shape else min(full, stride * context.dims(0)[axis + 2])
            both = full - out
            # The reference's formula: the odd one is cut behind with SAME_UPPER, before otherwise.
            found.append((both // 2 if auto == "SAME_UPPER" else both - both // 2, out))
        else:
            begin, end = (0, 0) if auto == "VALID" else (pads[axis], pads[axis + count])
            found.append((begin, full - begin - end))
    return found


def _transposed(context: NodeContext) -> tuple[TensorType, ...]:
    filters = context.dims(1)[1] * context.get("group")
    return (
        TensorType(context.dtype, (context.dims(0)[0], filters, *[length for _, length in _cuts(context)])),
    )


def _products(shape: Sequence[int], groups: int) -> int:
    return shape[0] // groups * math.prod(shape[2:])


def _transposed_values(context: NodeContext) -> Interval:
    count = _products(context.dims(1), context.get("group"))
    found = total(context.dtype, count, context.range(0), context.range(1), fewer=True)
    return add(found, context.range(2)) if context.given(2) else found


def _transposed_torch(context: NodeContext, names: Sequence[str]) -> str:
    """In full, then cut: torch only has equal pads on both sides. The bias is last: pads have it too."""
    count = context.rank - 2
    text = (
        f"torch.nn.functional.conv_transpose{count}d({names[0]}, {names[1]}, "
        f"stride={tuple(context.get('strides') or (1,) * count)}, groups={context.get('group')}, "
        f"dilation={tuple(context.get('dilations') or (1,) * count)})"
    )
    pads = [(-begin, begin + out - _uncut(context, axis)) for axis, (begin, out) in enumerate(_cuts(context))]
    text = sliding_windows.torch_pad(text, pads)
    return f"{text} + {names[2]}.reshape({(-1, *(1,) * count)})" if context.given(2) else text


def _conv_transpose(since: int, dtypes: tuple[str, ...]) -> OperatorSpec:
    return OperatorSpec("ConvTranspose", since, dtypes=dtypes, ranks=_RANKS, degrees=(2, 3), plan=_spread,
                        within=multiplied,
                        attribute_specs=(*ATTRIBUTE_SPECS, planned_attribute("output_padding"),
                                         planned_attribute("output_shape")),
                        input_specs=(PRIMARY_INPUT,
                                     DataInput(lambda context: context.plan,
                                               within=lambda context: factor(context,
                                                                             _products(context.plan, 1))),
                                     DataInput(lambda context: (context.dims(1)[1] * context.get("group"),),
                                               within=addend)), infer=_transposed, values=_transposed_values,
                        torch=_transposed_torch)  # fmt: skip


register(
    _conv(11, NARROW),
    _conv(22, FLOATS),
    _conv_transpose(11, NARROW),
    _conv_transpose(22, FLOATS),
)
