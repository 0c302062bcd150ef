"""Operators that interpolate images, according to the ONNX operator reference.

Corrections as in `corrections`. Computed in float64 and rounded once, at the end. numpy; onnx rounds to
integer types.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from fuzzing.backends.onnx_reference.moved_places import noted_move

#: Coordinates that are multiples of a 16th leave bits to what is made of them.
_FINEST = 2.0**4
#: Weight of an element by its distance.
Kernel = Callable[[Any], Any]
Ints = Sequence[int]


def _triangle(distance: Any) -> Any:
    return np.maximum(0, 1 - np.abs(distance))


def _cubic(a: float) -> Kernel:
    """Equation (4) of Keys, "Cubic convolution interpolation" (1981), cited by the text of Resize."""

    def weight(distance: Any) -> Any:
        x = np.abs(distance)
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return np.where(x <= 1, near, np.where(x < 2, far, 0))

    return weight


# Resize


class _Axis(NamedTuple):
    """One axis that is resized. `output_width` is "the target length … which can be a fractional number"."""

    length_original: int
    length_resized: int
    output_width: float
    scale: float
    start: float
    end: float


def _original(axis: _Axis, mode: str) -> Any:
    """x_original of each x_resized: the formulas of coordinate_transformation_mode.

    For "align_corners", two of ONNX's own tests divide by the fractional output_width
    (resize_downsample_scales_{linear,cubic}_align_corners); the text has length_resized, and so have
    onnxruntime, openvino and torch.
    """
    x, last = np.arange(axis.length_resized, dtype=np.float64), axis.length_original - 1
    if mode == "align_corners":
        return x * last / max(1, axis.length_resized - 1)
    if mode == "asymmetric":
        return x / axis.scale
    if mode == "tf_crop_and_resize":
        if axis.length_resized == 1:
            return x + 0.5 * (axis.start + axis.end) * last
        return axis.start * last + x * (axis.end - axis.start) * last / (axis.length_resized - 1)
    if mode == "pytorch_half_pixel" and axis.length_resized == 1:
        return x * 0
    offset = 0.0
    if mode == "half_pixel_symmetric":
        offset = axis.length_original / 2 * (1 - axis.length_resized / axis.output_width)
    return offset + (x + 0.5) / axis.scale - 0.5


def _has_exact_places(axis: _Axis, mode: str) -> bool:
    """Whether the places along an axis are found without a rounding, in whatever order."""
    if mode in ("align_corners", "tf_crop_and_resize"):
        steps = max(1, axis.length_resized - 1)
        whole = (axis.length_original - 1) % steps == 0
        fine = all(bound * _FINEST % 1 == 0 for bound in (axis.start, axis.end))
        return (whole or _is_power(steps)) and (mode == "align_corners" or fine)
    return _is_power(axis.scale) and (mode != "half_pixel_symmetric" or _is_power(axis.output_width))


def _is_power(number: float) -> bool:
    """Whether it is a power of two."""
    return math.frexp(number)[0] == 0.5


def _nearest(x: Any, mode: str) -> Any:
    if mode == "floor":
        return np.floor(x)
    if mode == "ceil":
        return np.ceil(x)
    return np.ceil(x - 0.5) if mode == "round_prefer_floor" else np.floor(x + 0.5)


def _weights(x: Any, axis: _Axis, kernel: Kernel, support: int, antialias: bool, outside: bool) -> Any:
    """Weight of each element in each result: "a weighted average of neighborhood … sampling locations".

    Beyond the image its border continues, unless `exclude_outside` ("the weight of sampling locations outside
    the tensor will be set to 0 and the weight will be renormalized"). antialias: "stretching the resampling
    filter by a factor max(1, 1 / scale)", which must then be normalized.
    """
    squeeze = min(axis.scale, 1.0) if antialias else 1.0
    reach = math.ceil(support / squeeze)
    taps = np.floor(x)[:, None] + np.arange(-reach, reach + 2)
    weights = kernel((taps - x[:, None]) * squeeze)
    last = axis.length_original - 1
    if outside:
        weights = np.where((taps < 0) | (taps > last), 0, weights)
    if outside or antialias:
        weights = weights / weights.sum(axis=1, keepdims=True)
    found = np.zeros((axis.length_resized, axis.length_original))
    places = np.clip(taps, 0, last).astype(np.int64)
    np.add.at(found, (np.arange(axis.length_resized)[:, None], places), weights)
    return found


def _axes(
    shape: Ints, axes: Any, roi: Any, scales: Any, sizes: Any, policy: Optional[str]
) -> List[Tuple[int, _Axis]]:
    """The axes to resize, each with its lengths; see scales, sizes and keep_aspect_ratio_policy."""
    named = list(range(len(shape))) if axes is None else [int(axis) % len(shape) for axis in axes]
    count = len(named)
    ends = [0.0] * count + [1.0] * count if roi is None or not np.size(roi) else np.ravel(roi).tolist()
    if sizes is not None and np.size(sizes):
        lengths = [int(size) for size in np.ravel(sizes)]
        factors = [size / shape[axis] for size, axis in zip(lengths, named)]
        if policy in ("not_larger", "not_smaller"):
            factors = [(min if policy == "not_larger" else max)(factors)] * count
            lengths = [math.floor(factor * shape[axis] + 0.5) for factor, axis in zip(factors, named)]
    else:
        factors = [float(scale) for scale in np.ravel(scales)]
        lengths = [math.floor(factor * shape[axis]) for factor, axis in zip(factors, named)]
    return [
        (axis, _Axis(shape[axis], lengths[i], factors[i] * shape[axis], factors[i], ends[i], ends[i + count]))
        for i, axis in enumerate(named)
    ]


def resize(
    node: Any,
    x: Any,
    roi: Any = None,
    scales: Any = None,
    sizes: Any = None,
    antialias: Optional[int] = None,
    axes: Optional[Ints] = None,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: Optional[int] = None,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: Optional[str] = None,
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
    **_: Any,
) -> Tuple[Any, ...]:
    """Resize, since opset 11: axis by axis, as the weights of an element are products over the axes."""
    found = x if mode == "nearest" else x.astype(np.float64)
    beyond = np.zeros((), bool)
    for axis, one in _axes(x.shape, axes, roi, scales, sizes, keep_aspect_ratio_policy):
        places = _original(one, coordinate_transformation_mode)
        move = noted_move(node.onnx_node.doc_string, axis)
        if move and not _has_exact_places(one, coordinate_transformation_mode):
            half = 0.5 if "half_pixel" in coordinate_transformation_mode else 0.0
            places = places + move * (np.abs(places) + half)
        along = (-1, *(1,) * (x.ndim - axis - 1))
        if coordinate_transformation_mode == "tf_crop_and_resize":
            beyond = beyond | ((places < 0) | (places > one.length_original - 1)).reshape(along)
        if mode == "nearest":
            near = np.clip(_nearest(places, nearest_mode), 0, one.length_original - 1)
            found = np.take(found, near.astype(np.int64), axis=axis)
        else:
            kernel, support = (_triangle, 1) if mode == "linear" else (_cubic(cubic_coeff_a), 2)
            table = _weights(places, one, kernel, support, bool(antialias), bool(exclude_outside))
            found = np.moveaxis(np.tensordot(table, found, (1, axis)), 0, axis)
    if beyond.any():
        found = np.where(beyond, np.asarray(extrapolation_value).astype(found.dtype), found)
    return (_cast(found, x.dtype),)


def _cast(found: Any, dtype: Any) -> Any:
    """Casts like onnx: integers are rounded and clipped."""
    if found.dtype == dtype:
        return found
    from onnx import numpy_helper

    return numpy_helper.saturate_cast(found, dtype)


# GridSample


def grid_sample(
    node: Any,
    x: Any,
    grid: Any,
    align_corners: Optional[int] = None,
    mode: str = "linear",
    padding_mode: str = "zeros",
    **_: Any,
) -> Tuple[Any, ...]:
    """GridSample: "grid specifies the sampling locations normalized by the input spatial dimensions". The
    modes bilinear and bicubic of opset 16 are linear and cubic since opset 20.
    """
    lengths = x.shape[2:]
    bounds = [(0.0, n - 1.0) if align_corners else (-0.5, n - 0.5) for n in lengths]
    found = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    wide, move = grid.astype(np.float64), noted_move(node.onnx_node.doc_string, 0)
    if move and (wide * _FINEST % 1).any():
        wide = wide + move  # of places from -1 to 1
    for batch, normalized in enumerate(wide):
        taps = []
        # "The coordinates in the grid are in the order x, y, z": the last axis of the image comes first.
        for length, (low, high), n in zip(lengths, bounds, np.moveaxis(normalized, -1, 0)[::-1]):
            place = (n + 1) / 2 * (length - 1) if align_corners else ((n + 1) * length - 1) / 2
            if mode == "nearest":
                place = np.rint(place)
            out = (place < low) | (place > high)
            if mode in ("cubic", "bicubic"):
                pass  # sampled per element, as in torch, which the text cites
            elif padding_mode == "border":
                place = np.where(out, np.clip(place, 0, length - 1), place)
            elif padding_mode == "reflection":
                place = np.where(out, _reflect(place, low, high), place)
            taps.append(
                [(*_pixel(at, length, low, high, padding_mode), weight) for at, weight in _taps(place, mode)]
            )
        image = x[batch].astype(np.float64)
        for chosen in itertools.product(*taps):
            weight = math.prod(np.where(inside, share, 0) for _, inside, share in chosen)
            found[batch] += weight * image[(slice(None), *(place for place, _, _ in chosen))]
    return (found.astype(x.dtype),)


def _taps(place: Any, mode: str) -> List[Tuple[Any, Any]]:
    """The elements that count along one axis, and their weights; cubic with the coefficient -0.75."""
    if mode == "nearest":
        return [(place, 1.0)]
    base = np.floor(place)
    if mode in ("linear", "bilinear"):
        return [(base + step, _triangle(place - base - step)) for step in (0, 1)]
    weight = _cubic(-0.75)
    return [(base + step, weight(place - base - step)) for step in (-1, 0, 1, 2)]


def _pixel(place: Any, length: int, low: float, high: float, padding_mode: str) -> Tuple[Any, Any]:
    """The element at an integer position, and whether there is one: "zeros: 0 for out-of-bound grid
    locations, border: border pixel values, reflection: values at locations reflected by the border until [in]
    bound".
    """
    inside = (place >= 0) & (place <= length - 1) | (padding_mode != "zeros")
    if padding_mode == "reflection":
        place = _reflect(place, low, high)
    return np.clip(place, 0, length - 1).astype(np.int64), inside


def _reflect(place: Any, low: float, high: float) -> Any:
    """Mirrored at both bounds as often as needed; equal bounds leave one position."""
    span = high - low
    if span == 0:
        return np.full_like(place, low)
    turned = np.mod(place - low, 2 * span)
    return low + np.minimum(turned, 2 * span - turned)


# Other operators


def roi_align(node: Any, *inputs: Any, **attributes: Any) -> Tuple[Any, ...]:
    """RoiAlign before opset 16 has no coordinate_transformation_mode: it does what is "output_half_pixel"
    since, "no [0.5] shift … backward compatible".
    """
    if "coordinate_transformation_mode" not in _given(node):
        attributes["coordinate_transformation_mode"] = "output_half_pixel"
    found: Tuple[Any, ...] = node.own(*inputs, **attributes)
    return found


def affine_grid(_node: Any, theta: Any, size: Any, align_corners: int = 0, **_: Any) -> Tuple[Any, ...]:
    """AffineGrid: theta times the homogeneous coordinates of each place, from -1 to 1: the centers of the
    outer elements if align_corners is 1, else their outer edges. Of theta's type.
    """
    lengths = [int(length) for length in size[2:]]
    lines = []
    for length in lengths:
        steps = np.arange(length)
        if align_corners:
            # A single center is in the middle: the text does not define it and cites torch, which does so.
            lines.append(np.zeros(1) if length == 1 else 2 * steps / (length - 1) - 1)
        else:
            lines.append((2 * steps + 1) / length - 1)
    places = np.meshgrid(*lines, indexing="ij")[::-1]
    homogeneous = np.stack([*places, np.ones(lengths)], axis=-1)
    found = np.einsum("...k,nck->n...c", homogeneous, theta.astype(np.float64))
    return (found.astype(theta.dtype),)


def _given(node: Any) -> List[str]:
    return [attribute.name for attribute in node.onnx_node.attribute]
