"""A convolution by its definition, in float64."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def convolve(
    data: Array,
    weight: Array,
    bias: Array | None,
    stride: Sequence[int],
    padding: Sequence[tuple[int, int]],
    dilation: Sequence[int],
    groups: int,
) -> Array:
    """data (N, C, …), weight (O, C / groups, …); padding before and after each dimension."""
    padded = np.pad(data, ((0, 0), (0, 0), *padding))
    spans = [d * (k - 1) + 1 for k, d in zip(weight.shape[2:], dilation, strict=True)]
    lengths = [(n - span) // step + 1 for n, span, step in zip(padded.shape[2:], spans, stride, strict=True)]
    result = np.zeros((len(data), len(weight), *lengths))
    per_group, filters = weight.shape[1], len(weight) // groups
    for filter_ in range(len(weight)):
        first = filter_ // filters * per_group
        window = padded[:, first : first + per_group]
        for tap in itertools.product(*map(range, weight.shape[2:])):
            places = tuple(
                slice(t * d, t * d + (n - 1) * s + 1, s)
                for t, d, n, s in zip(tap, dilation, lengths, stride, strict=True)
            )
            at: Any = (filter_, slice(None), *tap)
            factors = weight[at].reshape(1, -1, *[1] * len(lengths))
            result[:, filter_] += (window[(slice(None), slice(None), *places)] * factors).sum(1)
        if bias is not None:
            result[:, filter_] += bias[filter_]
    return result


def pool(data: Array, kernel: Sequence[int], stride: Sequence[int], *, largest: bool) -> Array:
    """Without padding and dilation."""
    lengths = [(n - k) // s + 1 for n, k, s in zip(data.shape[2:], kernel, stride, strict=True)]
    result = np.zeros((*data.shape[:2], *lengths))
    for place in itertools.product(*map(range, lengths)):
        window = tuple(slice(p * s, p * s + k) for p, s, k in zip(place, stride, kernel, strict=True))
        values = data[(slice(None), slice(None), *window)]
        axes = tuple(range(2, values.ndim))
        at: Any = (..., *place)
        result[at] = values.max(axes) if largest else values.mean(axes)
    return result
