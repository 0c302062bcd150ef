"""Rules of ONNX about the windows of pools, of ConvTranspose and of Col2Im.

ONNX's reference evaluator runs them with pads of any length, where onnxruntime, OpenVINO and torch refuse.
"""

from __future__ import annotations

import math

import numpy as np

from fuzzing.graph.operands import Operands, Shape

#: Values of `auto_pad` with which `pads` counts.
_NOT_COMPUTED = (b"NOTSET", "NOTSET", b"", "")


def windows_are_whole(given: Operands) -> bool:
    """Windows have an element and a step along each axis, and pads are of them "greater than or equal to 0".

    `pads` "cannot be used simultaneously with auto_pad attribute".
    """
    x, pads = given.shape(0), given.get("pads")
    for name in ("kernel_shape", "strides", "dilations"):
        numbers = given.get(name)
        if numbers is not None and (min(numbers, default=1) <= 0 or (x and len(numbers) != len(x) - 2)):
            return False
    if pads is None:
        return True
    fits = min(pads, default=0) >= 0 and (not x or len(pads) == 2 * (len(x) - 2))
    return fits and given.get("auto_pad", b"NOTSET") in _NOT_COMPUTED


def pool_windows_hold_data(given: Operands) -> bool:
    """Each window of a pool holds an element that is no padding: there is no maximum or mean of nothing."""
    x, kernel = given.shape(0), given.get("kernel_shape")
    if x is None or kernel is None or len(kernel) != len(x) - 2:
        return True
    if given.get("auto_pad", b"NOTSET") not in _NOT_COMPUTED:
        return True  # such pads are shorter than the window
    count = len(kernel)
    pads = given.get("pads") or (0,) * (2 * count)
    strides = given.get("strides") or (1,) * count
    dilations = given.get("dilations") or (1,) * count
    rounded_up = bool(given.get("ceil_mode", 0))
    return all(
        _axis_holds_data(length, (pads[axis], pads[axis + count]), *window, rounded_up=rounded_up)
        for axis, (length, *window) in enumerate(zip(x[2:], kernel, strides, dilations, strict=True))
    )


def _axis_holds_data(
    length: int, pads: tuple[int, int], kernel: int, stride: int, dilation: int, *, rounded_up: bool
) -> bool:
    free = length + sum(pads) - (kernel - 1) * dilation - 1
    if free < 0 or stride <= 0 or length == 0:
        return True  # another rule is about pools without a window, and about data without elements
    begins = np.arange(0, free + 1 + (stride - 1 if rounded_up else 0), stride) - pads[0]
    begins = begins[begins < length] if rounded_up else begins  # a window behind the data is none
    places = begins[:, None] + np.arange(kernel) * dilation
    return bool(((places >= 0) & (places < length)).any(axis=1).all())


def transposed_convolution_fits(given: Operands) -> bool:
    """The filters fit the channels, and no pad that `output_shape` or SAME leads to is below 0.

    A pad "can take any value greater than or equal to 0". Where the output is longer than what the windows
    write and `output_padding`, onnxruntime and OpenVINO put zeros behind, ONNX's evaluator and tinygrad the
    formula's half before. One element more is behind, by ONNX's test_convtranspose_output_shape; SAME_UPPER's
    formula has it before.
    """
    x, w, wanted = given.shape(0), given.shape(1), given.get("output_shape")
    if x is None or w is None or len(w) != len(x):
        return True
    ones = (1,) * (len(x) - 2)
    strides, dilations = given.get("strides") or ones, given.get("dilations") or ones
    extra = given.get("output_padding") or (0,) * len(ones)
    most = [max(pair) - 1 for pair in zip(strides, dilations, strict=False)]
    if not _filters_fit(given, x, w) or not len(extra) == len(most) == len(ones):
        return False
    if any(one > limit for one, limit in zip(extra, most, strict=True)):
        return False
    same = given.get("auto_pad") in (b"SAME_UPPER", "SAME_UPPER", b"SAME_LOWER", "SAME_LOWER")
    upper = given.get("auto_pad") in (b"SAME_UPPER", "SAME_UPPER")
    if wanted is None and same:
        wanted = [length * stride for length, stride in zip(x[2:], strides, strict=True)]
    if wanted is None or len(wanted) != len(ones):
        return wanted is None
    written = [
        stride * (size - 1) + more + (kernel - 1) * dilation + 1
        for size, kernel, stride, dilation, more in zip(x[2:], w[2:], strides, dilations, extra, strict=True)
    ]
    return all(length - one <= (0 if upper else 1) for length, one in zip(wanted, written, strict=True))


def global_pool_has_axes(given: Operands) -> bool:
    """There is at least one axis to pool: "the dimensions are in the form of (N x C x D1 x D2 ... Dn)"."""
    shape = given.shape(0)
    return shape is None or len(shape) >= 3


def columns_fit_image(given: Operands) -> bool:
    """Columns are [N, channels · elements of a block, blocks] of an image of at least two axes."""
    columns, image, block = given.shape(0), given.value(1), given.value(2)
    if any(shape is not None and (len(shape) != 1 or shape[0] < 2) for shape in map(given.shape, (1, 2))):
        return False
    if image is None or block is None:
        return True
    count = len(image)
    if len(block) != count or not (image > 0).all() or not (block > 0).all():
        return False
    pads = given.get("pads") or (0,) * (2 * count)
    strides = given.get("strides") or (1,) * count
    dilations = given.get("dilations") or (1,) * count
    blocks = [
        (length + pads[axis] + pads[axis + count] - dilation * (size - 1) - 1) // stride + 1
        for axis, (length, size, stride, dilation) in enumerate(
            zip(image.tolist(), block.tolist(), strides, dilations, strict=True)
        )
    ]
    if min(blocks) <= 0:
        return False
    return columns is None or (
        len(columns) == 3 and columns[1] % math.prod(block.tolist()) == 0 and columns[2] == math.prod(blocks)
    )


def _filters_fit(given: Operands, x: Shape, w: Shape) -> bool:
    """ "The number of channels in W.shape[0] should be equal to X.shape[1]"; a bias has the output's."""
    bias, group = given.shape(2), given.get("group", 1)
    return bool(group > 0 and x[1] == w[0] and x[1] % group == 0 and bias in (None, (w[1] * group,)))
