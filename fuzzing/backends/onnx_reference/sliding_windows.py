"""Pools and convolutions according to the ONNX operator reference.

Corrections as in `corrections`. Images are (N, C, D1 … Dn). Floats are computed in float64 and rounded once,
at the end. numpy only.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

Ints = Sequence[int]


class Windows(NamedTuple):
    """Windows over the spatial axes, one entry for each axis.

    starts  where the first window begins, before the image if there is padding
    ends    where padding ends, after the image; the last window may reach beyond it
    """

    lengths: Tuple[int, ...]
    counts: Tuple[int, ...]
    kernel: Tuple[int, ...]
    strides: Tuple[int, ...]
    dilations: Tuple[int, ...]
    starts: Tuple[int, ...]
    ends: Tuple[int, ...]

    def places(self, window: Ints) -> List[Any]:
        """The positions of a window along each axis: image, padding and beyond."""
        return [
            start + number * stride + dilation * np.arange(size)
            for number, size, stride, dilation, start in zip(
                window, self.kernel, self.strides, self.dilations, self.starts
            )
        ]

    def covered(self, window: Ints) -> List[Any]:
        """The positions of a window inside the image, along each axis."""
        return [
            place[(place >= 0) & (place < length)] for place, length in zip(self.places(window), self.lengths)
        ]

    def padded(self, window: Ints) -> int:
        """Number of positions of a window in image and padding."""
        return math.prod(int((place < end).sum()) for place, end in zip(self.places(window), self.ends))

    def each(self) -> Iterator[Any]:
        """The windows as tuples of indices along each axis."""
        return itertools.product(*(range(count) for count in self.counts))


def windows(
    lengths: Ints,
    kernel_shape: Ints,
    auto_pad: Optional[str] = None,
    pads: Optional[Ints] = None,
    strides: Optional[Ints] = None,
    dilations: Optional[Ints] = None,
    ceil_mode: Optional[int] = None,
    **_: Any,
) -> Windows:
    """The windows of a pool or convolution over spatial axes of these lengths.

    "SAME_UPPER or SAME_LOWER: output_spatial_shape[i] = ceil(input_spatial_shape[i] / strides[i])"; "the
    extra padding is added at the end for SAME_UPPER and at the beginning for SAME_LOWER". Else "floor((input
    + pad_shape - dilation * (kernel_shape - 1) - 1) / strides + 1)", or ceil, and "sliding windows that would
    start in the right padded region are ignored".
    """
    rank = len(lengths)
    steps, spread = tuple(strides or (1,) * rank), tuple(dilations or (1,) * rank)
    given = tuple(pads or ()) if auto_pad in (None, "", "NOTSET") else ()
    begins, ends = (given or (0,) * rank)[:rank], given[rank:] or (0,) * rank
    along = [
        _along(_Axis(*axis), auto_pad, ceil_mode)
        for axis in zip(lengths, kernel_shape, steps, spread, begins, ends)
    ]
    counts, starts, stops = zip(*along)
    return Windows(tuple(lengths), counts, tuple(kernel_shape), steps, spread, starts, stops)


class _Axis(NamedTuple):
    """One axis and its attributes."""

    length: int
    size: int
    stride: int
    dilation: int
    begin: int
    end: int


def _along(axis: _Axis, auto_pad: Optional[str], ceil_mode: Optional[int]) -> Tuple[int, int, int]:
    """Number of windows along an axis, start of the first, and end of the padding."""
    length, size, stride, dilation, begin, end = axis
    extent = dilation * (size - 1) + 1
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        count = -(-length // stride)
        both = max(0, (count - 1) * stride + extent - length)
        less, more = both // 2, both - both // 2
        return (count, -less, length + more) if auto_pad == "SAME_UPPER" else (count, -more, length + less)
    free = length + begin + end - extent
    count = (-(-free // stride) if ceil_mode else free // stride) + 1
    if ceil_mode and (count - 1) * stride >= length + begin:
        count -= 1
    return count, -begin, length + end


def max_pool(_node: Any, x: Any, storage_order: Optional[int] = None, **attributes: Any) -> Tuple[Any, ...]:
    """MaxPool: "maximum number of elements exclude pad"; the indices are those "as flatten 1-D tensor"."""
    space = x.shape[2:]
    every = windows(space, **attributes)
    found = np.full((*x.shape[:2], *every.counts), _least(x.dtype), x.dtype)
    where = np.zeros(found.shape, np.int64)
    # Axis i steps over the product of the lengths after it (row major), or before it (column major).
    order = range(len(space))
    steps = [
        math.prod(space[j] for j in order if (j < axis if storage_order else j > axis)) for axis in order
    ]
    planes = np.arange(math.prod(x.shape[:2])).reshape(x.shape[:2]) * math.prod(space)
    for window in every.each():
        places = every.covered(window)
        if not all(place.size for place in places):
            continue
        part = x[(slice(None), slice(None), *np.ix_(*places))].reshape(*x.shape[:2], -1)
        flat = sum(step * place for step, place in zip(steps, np.meshgrid(*places, indexing="ij")))
        best = part.argmax(axis=-1)
        found[(..., *window)] = np.take_along_axis(part, best[..., None], -1)[..., 0]
        where[(..., *window)] = planes + np.ravel(flat)[best]
    return found, where


def max_unpool(
    node: Any, x: Any, places: Any, output_shape: Optional[Any] = None, **attributes: Any
) -> Tuple[Any, ...]:
    """MaxUnpool: "the indices are linear, i.e. computed considering the tensor as flattened 1-D tensor".

    That tensor is the input of the MaxPool to invert, whose shape is `output_shape`. onnx's own
    implementation counts in the smallest such input (https://github.com/onnx/onnx/issues/2398);
    onnxruntime, tinygrad and torch follow the text.
    """
    if output_shape is None:
        return tuple(node.own(x, places, **attributes))
    found = np.zeros([int(length) for length in output_shape], x.dtype)
    found.flat[places.ravel()] = x.ravel()
    return (found,)


def _least(dtype: Any) -> Any:
    """The maximum of no elements."""
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


def average_pool(
    _node: Any, x: Any, count_include_pad: Optional[int] = None, **attributes: Any
) -> Tuple[Any, ...]:
    """AveragePool: "divided by the number of elements (exclude pad when … count_include_pad is zero)"."""
    every = windows(x.shape[2:], **attributes)
    found = np.zeros((*x.shape[:2], *every.counts))
    for window in every.each():
        part = _part(x, every, window)
        count = every.padded(window) if count_include_pad else part.shape[-1]
        found[(..., *window)] = part.sum(axis=-1) / count
    return (found.astype(x.dtype),)


def lp_pool(_node: Any, x: Any, p: float = 2, **attributes: Any) -> Tuple[Any, ...]:
    """LpPool: "computing the Lp norm on all values of a subset of the input tensor"; padding adds nothing."""
    every = windows(x.shape[2:], **attributes)
    found = np.zeros((*x.shape[:2], *every.counts))
    for window in every.each():
        found[(..., *window)] = (np.abs(_part(x, every, window)) ** p).sum(axis=-1) ** (1 / p)
    return (found.astype(x.dtype),)


def _part(x: Any, every: Windows, window: Ints) -> Any:
    """The elements of a window in float64, of shape (N, C, count)."""
    index = (slice(None), slice(None), *np.ix_(*every.covered(window)))
    return x[index].astype(np.float64).reshape(*x.shape[:2], -1)


def global_max_pool(_node: Any, x: Any, **_: Any) -> Tuple[Any, ...]:
    """GlobalMaxPool: "equivalent to MaxPool with kernel size equal to the spatial dimension"."""
    return (x.max(axis=tuple(range(2, x.ndim)), keepdims=True),)


def global_lp_pool(_node: Any, x: Any, p: float = 2, **_: Any) -> Tuple[Any, ...]:
    """GlobalLpPool: "equivalent to LpPool with kernel size equal to the spatial dimension"."""
    powers = np.abs(x.astype(np.float64)) ** p
    return ((powers.sum(axis=tuple(range(2, x.ndim)), keepdims=True) ** (1 / p)).astype(x.dtype),)


def lrn(
    _node: Any, x: Any, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0, size: int = 1, **_: Any
) -> Tuple[Any, ...]:
    """LRN: "max(0, c - floor((size - 1) / 2)) <= i <= min(C - 1, c + ceil((size - 1) / 2))"."""
    wide = x.astype(np.float64)
    before, behind = (size - 1) // 2, size // 2
    sums = np.empty_like(wide)
    for channel in range(x.shape[1]):
        region = wide[:, max(0, channel - before) : channel + behind + 1]
        sums[:, channel] = (region**2).sum(axis=1)
    return ((wide / (bias + alpha / size * sums) ** beta).astype(x.dtype),)


def convolve(x: Any, weights: Any, attributes: Mapping[str, Any]) -> Any:
    """The sums of Conv without bias, in the type of the arguments; padding is 0."""
    every = windows(x.shape[2:], **{**attributes, "kernel_shape": weights.shape[2:]})
    group = attributes.get("group", 1)
    channels = weights.shape[0]
    filters = weights.reshape(group, channels // group, *weights.shape[1:])
    found = np.zeros((x.shape[0], channels, *every.counts), x.dtype)
    for window in every.each():
        inside = [
            (place >= 0) & (place < length) for place, length in zip(every.places(window), every.lengths)
        ]
        part = x[(slice(None), slice(None), *np.ix_(*every.covered(window)))]
        taps = filters[(..., *np.ix_(*(np.flatnonzero(one) for one in inside)))]
        found[(..., *window)] = np.einsum(
            "ngt,gmt->ngm",
            part.reshape(x.shape[0], group, -1),
            taps.reshape(group, channels // group, -1),
        ).reshape(x.shape[0], channels)
    return found


def conv_transpose(
    _node: Any,
    x: Any,
    weights: Any,
    bias: Any = None,
    auto_pad: Optional[str] = None,
    dilations: Optional[Ints] = None,
    group: int = 1,
    output_padding: Optional[Ints] = None,
    output_shape: Optional[Ints] = None,
    pads: Optional[Ints] = None,
    strides: Optional[Ints] = None,
    **_: Any,
) -> Tuple[Any, ...]:
    """ConvTranspose: each element adds the kernel times itself to the output; then the pads are cut off."""
    space, kernel = x.shape[2:], weights.shape[2:]
    rank = len(space)
    steps, spread = strides or (1,) * rank, dilations or (1,) * rank
    behind = output_padding or (0,) * rank
    full = [
        stride * (length - 1) + more + (size - 1) * dilation + 1
        for stride, length, more, size, dilation in zip(steps, space, behind, kernel, spread)
    ]
    # Channels are (group, within it) on both sides.
    data = x.astype(np.float64).reshape(x.shape[0], group, -1, *space)
    taps = weights.astype(np.float64).reshape(group, -1, *weights.shape[1:])
    found = np.zeros((x.shape[0], group, weights.shape[1], *full))
    for tap in itertools.product(*(range(size) for size in kernel)):
        place: Tuple[Any, ...] = tuple(
            slice(dilation * number, dilation * number + stride * (length - 1) + 1, stride)
            for number, dilation, stride, length in zip(tap, spread, steps, space)
        )
        found[(..., *place)] += np.einsum("ngc...,gcm->ngm...", data, taps[(..., *tap)])
    found = found.reshape(x.shape[0], -1, *full)
    if bias is not None:
        found += bias.astype(np.float64).reshape(-1, *(1,) * rank)
    begins, lengths = _cut(full, space, steps, auto_pad, output_shape, pads)
    return (_crop(found, begins, lengths, bias).astype(x.dtype),)


def _cut(
    full: Ints,
    space: Ints,
    strides: Ints,
    auto_pad: Optional[str],
    output_shape: Optional[Ints],
    pads: Optional[Ints],
) -> Tuple[List[int], List[int]]:
    """Start and length of the output in the full sum.

    "output_shape can also be explicitly specified in which case pads values are auto generated"; "SAME_UPPER
    or SAME_LOWER mean … output_shape[i] = input_shape[i] * strides[i]"; "If (auto_pads == SAME_UPPER):
    pads[start_i] = total_padding[i]/2 … Else: pads[start_i] = total_padding[i] - (total_padding[i]/2)".
    """
    rank = len(space)
    same = auto_pad in ("SAME_UPPER", "SAME_LOWER")
    if output_shape is None and same:
        output_shape = [length * stride for length, stride in zip(space, strides)]
    if output_shape is None:
        given = list(pads or ()) if not auto_pad or auto_pad == "NOTSET" else []
        given = given or [0] * (2 * rank)
        return given[:rank], [length - a - b for length, a, b in zip(full, given, given[rank:])]
    wanted = list(output_shape)[-rank:]
    totals = [length - want for length, want in zip(full, wanted)]
    upper = auto_pad == "SAME_UPPER"
    return [total // 2 if upper else total - total // 2 for total in totals], wanted


def _crop(found: Any, begins: Ints, lengths: Ints, bias: Any) -> Any:
    """A part of the last axes; positions beyond them hold only the bias."""
    rank = len(lengths)
    result = np.zeros((*found.shape[:2], *lengths))
    if bias is not None:
        result += bias.astype(np.float64).reshape(-1, *(1,) * rank)
    source: List[Any] = []
    target: List[Any] = []
    for begin, length, size in zip(begins, lengths, found.shape[2:]):
        low, high = max(0, begin), min(size, begin + length)
        source.append(slice(low, max(low, high)))
        target.append(slice(low - begin, max(low, high) - begin))
    result[(..., *target)] = found[(..., *source)]
    return result
