"""Operators that select, place and pad elements, according to the ONNX operator reference.

Corrections as in `corrections`. numpy only.
"""

from __future__ import annotations

import math
from typing import Any, Optional, Sequence, Tuple

import numpy as np


def gather_elements(_node: Any, data: Any, indices: Any, axis: int = 0, **_: Any) -> Tuple[Any, ...]:
    """GatherElements: "out[i][j][k] = input[index[i][j][k]][j][k] if axis = 0", and so on; the index may be
    shorter than the input along the other axes.
    """
    places = [np.asarray(place) for place in np.ogrid[tuple(slice(length) for length in indices.shape)]]
    places[axis] = indices  # negative indices count from the end, as in numpy
    return (data[tuple(places)],)


def one_hot(_node: Any, indices: Any, depth: Any, values: Any, axis: int = -1, **_: Any) -> Tuple[Any, ...]:
    """OneHot: "locations represented by the index values … take value on_value", all others off_value;
    indices outside [-depth, depth-1] give off_value only. "In case 'indices' is of non-integer type, the
    values will be casted to int64 before use", and depth alike.
    """
    size = int(np.asarray(depth).ravel()[0])
    places = np.asarray(indices).astype(np.int64)
    places = np.where(places < 0, places + size, places)
    place = axis % (places.ndim + 1)
    classes = np.arange(size).reshape(-1, *(1,) * (places.ndim - place))
    return (np.where(np.expand_dims(places, place) == classes, values[1], values[0]),)


def pad(
    _node: Any,
    data: Any,
    pads: Any,
    constant_value: Any = None,
    axes: Any = None,
    mode: Optional[str] = None,
    **_: Any,
) -> Tuple[Any, ...]:
    """Pad: "the number of padding elements to add or remove (if negative) at the beginning and end of each
    axis".

    Removal comes first, so that removed elements are not mirrored, repeated or wrapped around.
    """
    numbers = [int(number) for number in pads]
    chosen = range(data.ndim) if axes is None else [int(axis) % data.ndim for axis in axes]
    before, behind = [0] * data.ndim, [0] * data.ndim
    for place, axis in enumerate(chosen):
        before[axis], behind[axis] = numbers[place], numbers[place + len(numbers) // 2]
    kept = data[
        tuple(
            slice(max(0, -begin), length - max(0, -end))
            for begin, end, length in zip(before, behind, data.shape)
        )
    ]
    width = [(max(0, begin), max(0, end)) for begin, end in zip(before, behind)]
    if mode in (None, "", "constant"):
        value = data.dtype.type(0) if constant_value is None else np.asarray(constant_value).ravel()[0]
        return (np.pad(kept, width, constant_values=value).astype(data.dtype),)
    return (np.pad(kept, width, mode=mode).astype(data.dtype),)  # type: ignore[call-overload]


def unique(_node: Any, x: Any, axis: Optional[int] = None, **attributes: Any) -> Tuple[Any, ...]:
    """Unique: "either sorted in ascending order or optionally in the order of the first occurrence"; without
    an axis "the input tensor is flattened".
    """
    data = x.ravel() if axis is None else x
    along = 0 if axis is None else axis
    _, first, inverse, counts = np.unique(data, True, True, True, axis=along)
    order = np.argsort(first) if attributes.get("sorted") == 0 else np.arange(len(first))
    rank = np.argsort(order)
    found = np.take(data, first[order], axis=along)
    return found, first[order], rank[inverse.ravel()], counts[order]


def non_max_suppression(
    node: Any,
    boxes: Any,
    scores: Any,
    max_output_boxes_per_class: Any = None,
    iou_threshold: Any = None,
    score_threshold: Any = None,
    **attributes: Any,
) -> Tuple[Any, ...]:
    """NonMaxSuppression: the three thresholds are scalars, and optional: "default to 0, which means no
    output", "default to 0", and no threshold on scores.
    """
    most = 0 if max_output_boxes_per_class is None else int(np.ravel(max_output_boxes_per_class)[0])
    if most <= 0:
        return (np.zeros((0, 3), np.int64),)
    overlap = np.zeros(1, np.float32) if iou_threshold is None else np.ravel(iou_threshold)
    least = None if score_threshold is None else np.ravel(score_threshold)
    found: Tuple[Any, ...] = node.own(boxes, scores, np.array([most], np.int64), overlap, least, **attributes)
    return found


def max_roi_pool(
    _node: Any, x: Any, rois: Any, pooled_shape: Sequence[int] = (), spatial_scale: float = 1.0, **_: Any
) -> Tuple[Any, ...]:
    """MaxRoiPool: "max pooling across each RoI, to produce output … (num_rois, channels, pooled_shape[0],
    pooled_shape[1])". The text leaves the division of a region to its source, Fast R-CNN (Girshick 2015,
    2.1): corners rounded to whole pixels, both inside, and bins rounded outwards, so that they overlap; an
    empty bin is 0.
    """
    found = np.zeros((len(rois), x.shape[1], *pooled_shape), x.dtype)
    for number, roi in enumerate(rois.astype(np.float64)):
        corners = np.floor(np.abs(roi[1:]) * spatial_scale + 0.5) * np.sign(roi[1:])
        left, top, right, bottom = (int(corner) for corner in corners)
        rows = _bins(top, bottom, pooled_shape[0], x.shape[2])
        columns = _bins(left, right, pooled_shape[1], x.shape[3])
        for i, row in enumerate(rows):
            for j, column in enumerate(columns):
                part = x[int(roi[0]), :, row, column]
                if part.size:
                    found[number, :, i, j] = part.max(axis=(1, 2))
    return (found,)


def _bins(begin: int, end: int, count: int, length: int) -> Sequence[slice]:
    size = max(end - begin + 1, 1) / count
    return [
        slice(
            min(max(math.floor(place * size) + begin, 0), length),
            min(max(math.ceil((place + 1) * size) + begin, 0), length),
        )
        for place in range(count)
    ]
