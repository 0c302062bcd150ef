"""Operators that average, normalize and quantize, according to the ONNX operator reference.

Corrections as in `corrections`. numpy only.
"""

from __future__ import annotations

from typing import Any, Optional, Tuple

import numpy as np

from fuzzing.backends.onnx_reference.sliding_windows import convolve

#: onnx.TensorProto.DataType of `stash_type`: bfloat16 is computed as float32, which holds more.
_STASH = {1: np.float32, 10: np.float16, 11: np.float64, 16: np.float32}


def batch_normalization(
    node: Any,
    x: Any,
    scale: Any,
    bias: Any,
    mean: Any,
    variance: Any,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    **_: Any,
) -> Tuple[Any, ...]:
    """BatchNormalization before opset 14: "Output case #1: Y, mean, var, saved_mean, saved_var (training
    mode). Output case #2: Y (test mode)". The statistics of training mode are the batch's own.
    """
    along = (-1, *(1,) * (x.ndim - 2))
    wide = [part.astype(np.float64) for part in (x, scale, bias, mean, variance)]
    data, gain, shift, given_mean, given_variance = wide
    more: Tuple[Any, ...] = ()
    if len(node.onnx_node.output) > 1:
        others = (0, *range(2, x.ndim))
        saved = data.mean(axis=others), data.var(axis=others)
        running = [
            old * momentum + new * (1 - momentum) for old, new in zip((given_mean, given_variance), saved)
        ]
        more = tuple(part.astype(mean.dtype) for part in (*running, *saved))
        given_mean, given_variance = saved
    deviation = np.sqrt(given_variance + epsilon).reshape(along)
    found = gain.reshape(along) * (data - given_mean.reshape(along)) / deviation + shift.reshape(along)
    return (found.astype(x.dtype), *more)


def layer_normalization(
    _node: Any,
    x: Any,
    scale: Any,
    bias: Any = None,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
    **_: Any,
) -> Tuple[Any, ...]:
    """LayerNormalization: stage one, and so Mean and InvStdDev, in stash_type's precision; then "finally cast
    Normalized back to the original type of X"; "the second stage doesn't depend on stash_type".
    """
    stash: Any = _STASH[stash_type]
    axes = tuple(range(axis % x.ndim, x.ndim))
    data = x.astype(stash)
    mean = data.mean(axis=axes, keepdims=True, dtype=stash)
    centered = data - mean
    variance = (centered * centered).mean(axis=axes, keepdims=True, dtype=stash)
    inverse = (1 / np.sqrt(variance + stash(epsilon))).astype(stash)
    normalized = (centered * inverse).astype(x.dtype).astype(np.float64) * scale.astype(np.float64)
    if bias is not None:
        normalized = normalized + bias.astype(np.float64)
    return normalized.astype(x.dtype), mean, inverse


def negative_log_likelihood_loss(
    _node: Any,
    x: Any,
    target: Any,
    weight: Any = None,
    ignore_index: Optional[int] = None,
    reduction: str = "mean",
    **_: Any,
) -> Tuple[Any, ...]:
    """NegativeLogLikelihoodLoss: "loss is zero for the case when target-value equals ignore_index", for any
    value of it, and such a sample does not count in a mean: as in ONNX's own tests, with and without weights.
    """
    kept = np.ones(target.shape, bool) if ignore_index is None else target != ignore_index
    classes = np.where(kept, target, 0)
    weights = np.ones(x.shape[1]) if weight is None else weight.astype(np.float64)
    share = np.where(kept, weights[classes], 0)
    picked = np.take_along_axis(x.astype(np.float64), np.expand_dims(classes, 1).astype(np.int64), 1)
    loss = -picked.squeeze(1) * share
    if reduction == "mean":
        with np.errstate(invalid="ignore"):
            loss = loss.sum() / share.sum()
    elif reduction == "sum":
        loss = loss.sum()
    return (np.asarray(loss).astype(x.dtype),)


def mean(_node: Any, *inputs: Any, **_: Any) -> Tuple[Any, ...]:
    """Mean: "element-wise mean of each of the input tensors (with Numpy-style broadcasting support)"."""
    total = sum(part.astype(np.float64) for part in inputs)
    return (np.asarray(total / len(inputs)).astype(inputs[0].dtype),)


def reduce_sum_square(node: Any, *inputs: Any, **attributes: Any) -> Tuple[Any, ...]:
    """ReduceSumSquare: input and output have the type T; numpy sums int32 as int64.

    Before opset 18 an empty list of axes is all axes, as onnx itself takes it; numpy takes it as none.
    """
    axes = attributes.get("axes")
    given = {**attributes, "axes": None} if axes is not None and len(axes) == 0 else attributes
    [found] = node.own(*inputs, **given)
    return (np.asarray(found).astype(inputs[0].dtype),)


def det(_node: Any, x: Any, **_: Any) -> Tuple[Any, ...]:
    """Det: "determinant of a square matrix or batches of square matrices", of any float type."""
    return (np.asarray(np.linalg.det(x.astype(np.float64))).astype(x.dtype),)


# Quantized operators


def dequantize_linear(
    _node: Any, x: Any, scale: Any, zero_point: Any = None, axis: int = 1, **_: Any
) -> Tuple[Any, ...]:
    """DequantizeLinear before opset 19: "y = (x - x_zero_point) * x_scale", along an axis if scale is a
    vector.
    """
    shape = (-1, *(1,) * (x.ndim - axis % x.ndim - 1)) if np.ndim(scale) and np.size(scale) > 1 else ()
    zero = 0 if zero_point is None else zero_point.astype(np.int64).reshape(shape)
    return (((x.astype(np.int64) - zero) * scale.reshape(shape)).astype(scale.dtype),)


def qlinear_matmul(
    _node: Any,
    a: Any,
    a_scale: Any,
    a_zero: Any,
    b: Any,
    b_scale: Any,
    b_zero: Any,
    y_scale: Any,
    y_zero: Any,
    **_: Any,
) -> Tuple[Any, ...]:
    """QLinearMatMul: "y = saturate((x / y_scale) + y_zero_point). For (x / y_scale), it is rounding to
    nearest ties to even": before the zero point is added, so that an odd one does not affect ties. Scales and
    zero points are per tensor, per row of a and y, or per column of b.
    """
    rows = [_rows(part) for part in (a_scale, a_zero, y_scale, y_zero)]
    total = np.matmul(
        a.astype(np.int64) - rows[1].astype(np.int64), b.astype(np.int64) - b_zero.astype(np.int64)
    )
    return (_quantize(total, rows[0] * b_scale / rows[2], rows[3]),)


def _rows(array: Any) -> Any:
    """A vector of rows as a column."""
    return array[:, None] if np.ndim(array) == 1 and np.size(array) > 1 else array


def qlinear_conv(
    _node: Any,
    x: Any,
    x_scale: Any,
    x_zero: Any,
    w: Any,
    w_scale: Any,
    w_zero: Any,
    y_scale: Any,
    y_zero: Any,
    bias: Any = None,
    **attributes: Any,
) -> Tuple[Any, ...]:
    """QLinearConv: the convolution of quantized tensors, with scales and zero points of w per tensor or "per
    output channel", and a bias "quantized using scale = input scale * weight scale and zero point as 0".
    """
    rank = x.ndim - 2
    filters = w.astype(np.int64) - _channels(w_zero, rank + 1).astype(np.int64)
    total = convolve(x.astype(np.int64) - x_zero.astype(np.int64), filters, attributes)
    if bias is not None:
        total = total + bias.astype(np.int64).reshape(-1, *(1,) * rank)
    return (_quantize(total, x_scale * _channels(w_scale, rank) / y_scale, y_zero),)


def _channels(array: Any, behind: int) -> Any:
    """One number, or one per channel with so many axes after it."""
    return array.reshape(-1, *(1,) * behind) if np.size(array) > 1 else array.reshape(())


def _quantize(total: Any, scale: Any, zero_point: Any) -> Any:
    """Quantizes in the precision of the scales, so that a float64 run shows which ties are only near ones."""
    limits = np.iinfo(zero_point.dtype)
    rounded = np.rint(total.astype(scale.dtype) * scale) + zero_point.astype(np.int64)
    return np.clip(rounded, limits.min, limits.max).astype(zero_point.dtype)
