"""Convolutions, transposed ones, and those of quantised numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from fuzzing.graph.intervals import Interval, add
from fuzzing.graph.operator import LEAD, Data, Operator, planned
from fuzzing.graph.operators import register, windows
from fuzzing.graph.operators.sums import addend, factor, multiplied, room, total
from fuzzing.graph.operators.windows import NARROW
from fuzzing.graph.site import Site
from fuzzing.graph.types import FLOATS, Shape, TensorType

_RANKS = (3, 4, 5)
_DIVISORS = 8


def group(site: Site) -> int:
    """How many groups the channels form: one mostly, else all, else a small divisor."""
    channels = site.dims(0)[1]
    some = 1 + site.draws.below(min(channels, _DIVISORS))
    return site.draws.choice((1, 1, channels, some if channels % some == 0 else 1))


def weigh(site: Site) -> tuple[int, ...]:
    """Draws windows and groups; the plan is the shape of the weight."""
    kernel = windows.draw(site)
    batch, channels, *space = site.dims(0)
    groups = group(site)
    if groups > 1 or site.draws.chance(0.2):
        site.attributes["group"] = groups
    if site.draws.chance(0.7):
        site.attributes["kernel_shape"] = tuple(kernel)
    most = min(site.limits.max_dim, room(site) // (batch * math.prod(space)))
    filters = groups * site.draws.between(1, max(1, most // groups))
    return (filters, channels // groups, *kernel)


def convolved(site: Site, weight: int = 1) -> tuple[int, ...]:
    """The shape of what a convolution gives."""
    batch, _, *space = site.dims(0)
    filters, _, *kernel = site.dims(weight)
    return (batch, filters, *windows.lengths(site, space, kernel))


def terms(shape: Sequence[int]) -> int:
    """How many products an element sums, by the shape of the weight."""
    return math.prod(shape[1:])


def _values(site: Site) -> Interval:
    found = total(site.dtype, terms(site.dims(1)), site.range(0), site.range(1), fewer=True)
    return add(found, site.range(2)) if site.given(2) else found


def torch_text(site: Site, data: str, weight: str, bias: str | None) -> str:
    """A convolution in torch by the second input's weights; the padding apart, as it may be uneven."""
    space, kernel = site.dims(0)[2:], site.dims(1)[2:]
    count = len(space)
    data = windows.torch_pad(data, windows.paddings(site, space, kernel))
    strides = tuple(site.get("strides") or (1,) * count)
    dilations = tuple(site.get("dilations") or (1,) * count)
    return (
        f"torch.nn.functional.conv{count}d({data}, {weight}, {bias}, stride={strides}, "
        f"dilation={dilations}, groups={site.get('group')})"
    )


def _torch(site: Site, names: Sequence[str]) -> str:
    return torch_text(site, names[0], names[1], names[2] if site.given(2) else None)


SETTINGS = (planned("group", 1), planned("dilations"), *windows.SETTINGS)


def _conv(since: int, dtypes: tuple[str, ...]) -> Operator:
    return Operator(
        "Conv", since, dtypes=dtypes, ranks=_RANKS, degrees=(2, 3), settings=SETTINGS, plan=weigh,
        within=multiplied,
        slots=(
            LEAD,
            Data(lambda site: site.plan, within=lambda site: factor(site, terms(site.plan))),
            Data(lambda site: (site.dims(1)[0],), within=addend),
        ),
        infer=lambda site: (TensorType(site.dtype, convolved(site)),),
        values=_values, torch=_torch,
    )  # fmt: skip


# --- transposed -------------------------------------------------------------------------------------------


class _Axis(NamedTuple):
    """What was drawn for one spatial axis of a transposed convolution; `longest`: its length without pads."""

    kernel: int
    stride: int
    dilation: int
    extra: int
    begin: int
    end: int
    longest: int


def _spread(site: Site) -> Shape:
    """Draws the attributes of a transposed convolution; the plan is the shape of the weight.

    What grows is drawn within what is left: each axis in turn, the later ones at their present lengths.
    """
    draws, given = site.draws, site.attributes
    batch, channels, *space = site.dims(0)
    groups = group(site)
    left = room(site) // (batch * math.prod(space))  # so many times may one channel's elements be there
    per_group = draws.between(1, max(1, min(site.limits.max_dim, left) // groups))
    left //= groups * per_group
    form = draws.choice(("", "", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER", "shape"))
    axes = []
    for length in space:
        axis = _axis(site, length, left * length, form.startswith("SAME"))
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
    if groups > 1 or draws.chance(0.2):
        given["group"] = groups
    if draws.chance(0.7):
        given["kernel_shape"] = tuple([axis.kernel for axis in axes])
    return (channels, per_group, *[axis.kernel for axis in axes])


def _axis(site: Site, length: int, most: int, same: bool) -> _Axis:
    draws = site.draws
    stride = draws.between(1, min(3, max(1, most // length)))
    # With SAME the kernel covers the stride: else compilers disagree on what is missing.
    low = stride if same else 1
    high = max(low, min(site.limits.max_dim, most - stride * length + 1))
    kernel = draws.between(low, high)
    dilation = draws.between(1, 2) if kernel > 1 and 2 * kernel - 1 <= high else 1
    reach = dilation * (kernel - 1) + 1
    extra = draws.below(stride) if not same and draws.chance(0.3) else 0
    begin = draws.below(reach) if draws.chance(0.5) else 0
    end = draws.below(reach - begin) if draws.chance(0.5) else 0
    return _Axis(kernel, stride, dilation, extra, begin, end, stride * (length - 1) + reach + extra)


def _uncut(site: Site, axis: int) -> int:
    """The length of an axis before anything is padded or cut."""
    stride = (site.get("strides") or (1,) * (axis + 1))[axis]
    dilation = (site.get("dilations") or (1,) * (axis + 1))[axis]
    return int(stride * (site.dims(0)[axis + 2] - 1) + dilation * (site.dims(1)[axis + 2] - 1) + 1)


def _cuts(site: Site) -> list[tuple[int, int]]:
    """So much is cut before each axis, and so long is what remains."""
    count = site.rank - 2
    extra = site.get("output_padding") or (0,) * count
    pads = site.get("pads") or (0,) * (2 * count)
    auto, shape = site.get("auto_pad"), site.get("output_shape")
    found = []
    for axis in range(count):
        full = _uncut(site, axis) + extra[axis]
        if shape or auto.startswith("SAME"):
            stride = (site.get("strides") or (1,) * count)[axis]
            out = shape[axis] if shape else min(full, stride * site.dims(0)[axis + 2])
            both = full - out
            # The reference's formula: the odd one is cut behind with SAME_UPPER, before otherwise.
            found.append((both // 2 if auto == "SAME_UPPER" else both - both // 2, out))
        else:
            begin, end = (0, 0) if auto == "VALID" else (pads[axis], pads[axis + count])
            found.append((begin, full - begin - end))
    return found


def _transposed(site: Site) -> tuple[TensorType, ...]:
    filters = site.dims(1)[1] * site.get("group")
    return (TensorType(site.dtype, (site.dims(0)[0], filters, *[length for _, length in _cuts(site)])),)


def _products(shape: Sequence[int], groups: int) -> int:
    return shape[0] // groups * math.prod(shape[2:])


def _transposed_values(site: Site) -> Interval:
    count = _products(site.dims(1), site.get("group"))
    found = total(site.dtype, count, site.range(0), site.range(1), fewer=True)
    return add(found, site.range(2)) if site.given(2) else found


def _transposed_torch(site: Site, names: Sequence[str]) -> str:
    """In full, then cut: torch knows but equal pads on both sides; last the bias, which pads have too."""
    count = site.rank - 2
    text = (
        f"torch.nn.functional.conv_transpose{count}d({names[0]}, {names[1]}, "
        f"stride={tuple(site.get('strides') or (1,) * count)}, groups={site.get('group')}, "
        f"dilation={tuple(site.get('dilations') or (1,) * count)})"
    )
    pads = [(-begin, begin + out - _uncut(site, axis)) for axis, (begin, out) in enumerate(_cuts(site))]
    text = windows.torch_pad(text, pads)
    return f"{text} + {names[2]}.reshape({(-1, *(1,) * count)})" if site.given(2) else text


def _conv_transpose(since: int, dtypes: tuple[str, ...]) -> Operator:
    return Operator(
        "ConvTranspose", since, dtypes=dtypes, ranks=_RANKS, degrees=(2, 3), plan=_spread,
        within=multiplied,
        settings=(*SETTINGS, planned("output_padding"), planned("output_shape")),
        slots=(
            LEAD,
            Data(lambda site: site.plan, within=lambda site: factor(site, _products(site.plan, 1))),
            Data(lambda site: (site.dims(1)[1] * site.get("group"),), within=addend),
        ),
        infer=_transposed, values=_transposed_values, torch=_transposed_torch,
    )  # fmt: skip


register(
    _conv(11, NARROW),
    _conv(22, FLOATS),
    _conv_transpose(11, NARROW),
    _conv_transpose(22, FLOATS),
)
