"""Pools: over windows, over whole images, and the inverse of the largest's."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from fuzzing.graph.domains import Choice
from fuzzing.graph.intervals import Interval, hull, whole, widen
from fuzzing.graph.ir import Constant
from fuzzing.graph.operator import LEAD, Auxiliary, Operator, Setting, Torch, Values, planned
from fuzzing.graph.operators import register, windows
from fuzzing.graph.operators.sums import room, squared, summands
from fuzzing.graph.operators.windows import NARROW
from fuzzing.graph.site import Site, int64
from fuzzing.graph.types import FLOATS, TensorType

_RANKS = (3, 4, 5)
_INDICES = 0.1  # how often MaxPool gives the indices too


def _pooled(site: Site) -> tuple[TensorType, ...]:
    batch, channels, *space = site.dims(0)
    shape = (batch, channels, *windows.lengths(site, space, site.get("kernel_shape")))
    return (TensorType(site.dtype, shape), TensorType("int64", shape))[: site.outputs]


def _global(site: Site) -> tuple[TensorType, ...]:
    return (TensorType(site.dtype, (*site.dims(0)[:2], *(1,) * (site.rank - 2))),)


def _draw(site: Site, *, dilated: bool = True, ceiled: bool = True) -> None:
    site.attributes["kernel_shape"] = tuple(windows.draw(site, dilated=dilated, ceiled=ceiled))


def _draw_largest(site: Site) -> None:
    _draw(site)
    if site.draws.chance(_INDICES):
        site.outputs = 2


def _largest(site: Site) -> tuple[Interval, ...]:
    return (site.range(0), Interval(0, site.x.elements - 1))[: site.outputs]


def _mean(site: Site) -> Interval:
    """Padding counts as zeros, if it is counted."""
    return widen(hull((site.range(0), Interval(0, 0))))


def _norm(site: Site, count: int) -> Interval:
    """Of `count` elements at most, for the p drawn, 1 the largest."""
    return widen(Interval(0, site.range(0).largest * count ** (1 / site.get("p"))), 1e-3)


# --- torch ------------------------------------------------------------------------------------------------


def _frame(site: Site) -> tuple[list[tuple[int, int]], str]:
    """The paddings of a pool, and its kernel's steps as torch writes them."""
    space, kernel = site.dims(0)[2:], site.get("kernel_shape")
    strides = tuple(site.get("strides") or (1,) * len(kernel))
    dilations = tuple(site.get("dilations") or (1,) * len(kernel))
    return windows.paddings(site, space, kernel), f"stride={strides}, dilation={dilations}"


def _torch_largest(site: Site, names: Sequence[str]) -> str:
    pads, steps = _frame(site)
    kernel = tuple(site.get("kernel_shape"))
    data = windows.torch_pad(names[0], pads, "-float('inf')")
    pooled = f"torch.nn.functional.max_pool{len(kernel)}d({data}, {kernel}, {steps}"
    if site.outputs == 1:
        return f"{pooled})"
    return f"(lambda most, where: (most, {_unpadded(site, pads)}))(*{pooled}, return_indices=True))"


def _unpadded(site: Site, pads: Sequence[tuple[int, int]]) -> str:
    """ONNX's indices, into the whole tensor, from torch's, into one padded image."""
    space = site.dims(0)[2:]
    planes, ones = math.prod(site.dims(0)[:2]), (1,) * len(space)
    text = f"torch.arange({planes}).reshape({(*site.dims(0)[:2], *ones)}) * {math.prod(space)}"
    outer = inner = 1
    for (begin, end), length in zip(reversed(pads), reversed(space), strict=True):
        text += f" + (where // {outer} % {begin + length + end} - {begin}) * {inner}"
        outer, inner = outer * (begin + length + end), inner * length
    return text


def _sums(site: Site, data: str, name: str) -> str:
    """Sums over windows: a convolution of each channel with ones, as torch's own pools know no dilation."""
    channels, kernel = site.dims(0)[1], site.get("kernel_shape")
    _, steps = _frame(site)
    return (
        f"torch.nn.functional.conv{len(kernel)}d({data}, {name}.new_ones({(channels, 1, *kernel)}), "
        f"{steps}, groups={channels})"
    )


def _torch_mean(site: Site, names: Sequence[str]) -> str:
    """Sums over counts; the counts take in the pads, if they are asked to, but not what lies behind them."""
    pads, _ = _frame(site)
    data, counted = windows.torch_pad(names[0], pads), f"torch.ones_like({names[0]})"
    if site.get("count_include_pad"):
        own = pads
        if not site.get("auto_pad").startswith("SAME"):
            count = site.rank - 2
            given = site.get("pads") or (0,) * (2 * count)
            own = list(zip(given[:count], given[count:], strict=True))
        counted = windows.torch_pad(counted, own, "1.0")
        pads = [(a - c, b - d) for (a, b), (c, d) in zip(pads, own, strict=True)]
    counted = windows.torch_pad(counted, pads)
    return f"{_sums(site, data, names[0])} / {_sums(site, counted, names[0])}"


def _torch_norm(site: Site, names: Sequence[str]) -> str:
    p = site.get("p")
    data = windows.torch_pad(f"{names[0]}.abs() ** {p}", _frame(site)[0])
    return f"({_sums(site, data, names[0])}) ** (1 / {p})"


# --- unpooling --------------------------------------------------------------------------------------------


def _unpool(site: Site) -> None:
    """Strides as the kernel mostly; the output is as long as the windows that gave the input reach."""
    draws, space = site.draws, site.dims(0)[2:]
    left, kernel, strides = room(site) // site.x.elements, [], []
    for length in space:
        stride = draws.between(1, min(3, max(1, left)))
        size = draws.between(stride, max(stride, min(3, left)))
        left = left * length // ((length - 1) * stride + size)
        kernel.append(size)
        strides.append(stride)
    site.attributes["kernel_shape"] = tuple(kernel)
    site.attributes["strides"] = tuple(strides)


def _unpooled(site: Site) -> tuple[TensorType, ...]:
    if site.given(2):
        return (TensorType(site.dtype, tuple(site.numbers(2))),)
    kernel = site.get("kernel_shape")
    count = len(kernel)
    strides, pads = site.get("strides") or (1,) * count, site.get("pads") or (0,) * (2 * count)
    space = [
        (length - 1) * strides[axis] - pads[axis] - pads[axis + count] + kernel[axis]
        for axis, length in enumerate(site.dims(0)[2:])
    ]
    return (TensorType(site.dtype, (*site.dims(0)[:2], *space)),)


def _places(site: Site) -> Constant:
    """Where the elements go: different places of their own image, flat in the whole output."""
    (type_,) = _unpooled(site)
    batch, channels, *space = type_.lengths
    size, count = math.prod(space), math.prod(site.dims(0)[2:])
    start, step = site.draws.below(size), max(1, size // count)
    one = (start + step * np.arange(count)) % size
    every = one + size * np.arange(batch * channels)[:, None]
    return Constant("int64", every.reshape(site.dims(0)).astype(np.int64))


def _unpooled_shape(site: Site) -> Constant:
    """As long as without it: longer, and the reference leaves open where the elements are."""
    return int64(*_unpooled(site)[0].lengths)


def _unpooled_values(site: Site) -> Interval:
    return hull((site.range(0), Interval(0, 0)))


# --- entries ----------------------------------------------------------------------------------------------

_CEIL = planned("ceil_mode", 0)
_DILATIONS = planned("dilations")
_P = Setting("p", Choice(1, 2), omit=0.3, default=2)


def _max_pool(since: int, dtypes: tuple[str, ...]) -> Operator:
    return Operator(
        "MaxPool", since, dtypes=(*dtypes, "int8", "uint8"), ranks=_RANKS, within=whole, plan=_draw_largest,
        settings=(*windows.SETTINGS, _CEIL, _DILATIONS,
                  Setting("storage_order", Choice(0), omit=0.9, default=0)),
        infer=_pooled, values=_largest, torch=_torch_largest,
    )  # fmt: skip


def _average_pool(since: int, dtypes: tuple[str, ...], dilated: bool) -> Operator:
    return Operator(
        "AveragePool", since, dtypes=dtypes, ranks=_RANKS, within=summands,
        plan=lambda site: _draw(site, dilated=dilated),
        settings=(*windows.SETTINGS, _CEIL, *(_DILATIONS,) * dilated,
                  Setting("count_include_pad", Choice(0, 1), omit=0.4, default=0)),
        infer=_pooled, values=_mean, torch=_torch_mean,
    )  # fmt: skip


def _lp_pool(since: int, dtypes: tuple[str, ...], late: bool) -> Operator:
    return Operator(
        "LpPool", since, dtypes=dtypes, ranks=_RANKS, within=squared,
        plan=lambda site: _draw(site, dilated=late, ceiled=late),
        settings=(*windows.SETTINGS, *(_CEIL, _DILATIONS) * late, _P),
        infer=_pooled, torch=_torch_norm,
        values=lambda site: _norm(site, math.prod(site.get("kernel_shape"))),
    )  # fmt: skip


def _whole_image(
    name: str,
    since: int,
    dtypes: tuple[str, ...],
    domain: Callable[[TensorType], Interval],
    values: Values,
    torch: Torch,
    *settings: Setting,
) -> Operator:
    return Operator(name, since, dtypes=dtypes, ranks=_RANKS, values=values, infer=_global, torch=torch,
                    within=domain, settings=settings)  # fmt: skip


def _over(text: str) -> Torch:
    return lambda site, names: text.format(names[0], tuple(range(2, site.rank)), site.get("p"))


for _since, _dtypes in ((1, NARROW), (22, FLOATS)):
    register(
        _max_pool(max(_since, 12), _dtypes),
        _whole_image("GlobalMaxPool", _since, _dtypes, whole, lambda site: site.range(0),
                     _over("{0}.amax({1}, keepdim=True)")),
        _whole_image("GlobalAveragePool", _since, _dtypes, summands, lambda site: widen(site.range(0)),
                     _over("{0}.mean({1}, keepdim=True)")),
        _whole_image("GlobalLpPool", max(_since, 2), _dtypes, squared,
                     lambda site: _norm(site, math.prod(site.dims(0)[2:])),
                     _over("({0}.abs() ** {2}).sum({1}, keepdim=True) ** (1 / {2})"), _P),
        Operator("MaxUnpool", max(_since, 11), dtypes=_dtypes, ranks=_RANKS, within=whole, plan=_unpool,
                 slots=(LEAD, Auxiliary(_places), Auxiliary(_unpooled_shape)),
                 degrees=(2, 3), settings=(planned("kernel_shape"), planned("strides"), planned("pads")),
                 infer=_unpooled, values=_unpooled_values),
    )  # fmt: skip
register(
    _average_pool(11, NARROW, False),
    _average_pool(19, NARROW, True),
    _average_pool(22, FLOATS, True),
    _lp_pool(11, NARROW, False),
    _lp_pool(18, NARROW, True),
    _lp_pool(22, FLOATS, True),
)
