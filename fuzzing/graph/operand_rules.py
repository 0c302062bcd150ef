"""Rules of ONNX about the operands of one node, which its own shape inference does not enforce.

ONNX's reference evaluator runs models that the standard forbids: a Split into more parts than there are
elements, a Resize by 0. A compiler that rejects such a model has no bug. The rules are those of the
operators' pages in the ONNX reference (https://onnx.ai/onnx/operators/). A rule holds where what it is about
is unknown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from fuzzing.graph.ir import Graph, Node
from fuzzing.graph.operands import Array, Operands, Shape, ValueOf
from fuzzing.graph.sequence_rules import (
    attention,
    n_grams,
    recurrent,
    reverse_sequence,
    rotary_embedding,
    scan,
)
from fuzzing.graph.window_rules import pool_windows_hold_data, transposed_convolution_fits

#: Attributes that switch something: their pages give no meaning to numbers other than 0 and 1.
_SWITCHES = frozenset(
    {
        "align_corners",
        "allowzero",
        "antialias",
        "ceil_mode",
        "center_point_box",
        "count_include_pad",
        "detect_negative",
        "detect_positive",
        "exclude_outside",
        "exclusive",
        "fmod",
        "input_forget",
        "interleaved",
        "inverse",
        "is_case_sensitive",
        "is_causal",
        "keepdims",
        "largest",
        "layout",
        "new_axis",
        "noop_with_empty_axes",
        "onesided",
        "periodic",
        "reverse",
        "saturate",
        "select_last_index",
        "sorted",
        "storage_order",
        "training_mode",
        "transA",
        "transB",
        "upper",
    }
)


def obeys_rules(graph: Graph, node: Node, value_of: ValueOf) -> bool:
    """Whether a node obeys the rules of its operator."""
    if node.domain:
        rule = _TRAINING_RULES.get(node.op) if node.domain == "ai.onnx.preview.training" else None
        return rule is None or rule(Operands(graph, node, value_of))
    if any(value not in (0, 1) for name, value in node.attributes.items() if name in _SWITCHES):
        return False
    rule = _RULES.get(node.op)
    return rule is None or rule(Operands(graph, node, value_of))


def _split(given: Operands) -> bool:
    """Parts are not negative, add up to the length, and are as many as the outputs."""
    shape, count = given.shape(0), given.get("num_outputs")
    axis = given.get("axis", 0)
    if count is not None and count != given.outputs:
        return False
    if shape is None:
        return True
    if not -len(shape) <= axis < len(shape):
        return False
    parts = given.value(1)
    if parts is not None:
        return parts.shape == (given.outputs,) and bool((parts >= 0).all()) and parts.sum() == shape[axis]
    # All parts but the last have the length divided by `num_outputs`, rounded up.
    return count is None or math.ceil(shape[axis] / count) * (count - 1) <= shape[axis]


def _resize(given: Operands) -> bool:
    """Scales and sizes are positive, one for each axis that is resized; a region has two ends of each."""
    shape = given.shape(0)
    axes = given.get("axes")
    count = len(axes) if axes is not None else None if shape is None else len(shape)
    cropped = given.get("coordinate_transformation_mode") in (b"tf_crop_and_resize", "tf_crop_and_resize")
    region = given.shape(1) if cropped else None
    if region is not None and (len(region) != 1 or (count is not None and region[0] != 2 * count)):
        return False
    for place in (2, 3):
        value = given.value(place)
        if value is None or value.size == 0:
            continue
        if not (value > 0).all() or value.ndim != 1 or (count is not None and value.size != count):
            return False
    return True


def _tile(given: Operands) -> bool:
    """Repeats are a vector with one number for each axis, none of them negative."""
    shape, repeats, value = given.shape(0), given.shape(1), given.value(1)
    if repeats is not None and (len(repeats) != 1 or (shape is not None and repeats[0] != len(shape))):
        return False
    return value is None or bool((value >= 0).all())


def _channel_vectors(given: Operands) -> bool:
    """All inputs but the first are vectors with one number for each channel."""
    shape = given.shape(0)
    vectors = [vector for place in range(1, 5) if (vector := given.shape(place)) is not None]
    if shape is None:
        return all(len(vector) == 1 for vector in vectors)
    return len(shape) >= 2 and all(vector == (shape[1],) for vector in vectors)


def _instance_normalization(given: Operands) -> bool:
    """As for channels, and there is at least one axis to normalize over."""
    shape = given.shape(0)
    return (shape is None or len(shape) >= 3) and _channel_vectors(given)


def _non_max_suppression(given: Operands) -> bool:
    """Boxes are [batches, boxes, 4], scores [batches, classes, boxes]."""
    boxes, scores = given.shape(0), given.shape(1)
    if boxes is None or scores is None:
        return True
    if len(boxes) != 3 or len(scores) != 3 or boxes[2] != 4:
        return False
    return boxes[0] == scores[0] and boxes[1] == scores[2]


def _stft(given: Operands) -> bool:
    """There is at least one frame: no frame is longer than the signal, and frames advance.

    "`frame_step` must be a scalar", `frame_length` too, which is that of the window, a vector.
    """
    signal, step, window, length = given.shape(0), given.value(1), given.shape(2), given.value(3)
    if any(given.shape(at) not in (None, ()) for at in (1, 3)) or (window is not None and len(window) != 1):
        return False
    if step is not None and not (step > 0).all():
        return False
    if window is not None and length is not None and window[0] != length:
        return False
    frame = (
        window[0] if window else int(length.reshape(-1)[0]) if length is not None and length.size else None
    )
    if frame is None or signal is None:
        return True
    return len(signal) == 3 and 0 < frame <= signal[1]


def _vectors(*places: int) -> Callable[[Operands], bool]:
    """These inputs are vectors."""
    return lambda given: all(len(shape) == 1 for at in places if (shape := given.shape(at)) is not None)


def _reduction(given: Operands) -> bool:
    """Axes are a vector, within the rank, each once."""
    axes = given.get("axes")
    return _vectors(1)(given) and _axes_fit(given.shape(0), given.value(1) if axes is None else axes)


def _unsqueeze(given: Operands) -> bool:
    """Axes are a vector, within the rank of the result, each once."""
    shape, axes = given.shape(0), given.value(1)
    if not _vectors(1)(given) or shape is None or axes is None:
        return _vectors(1)(given)
    return _axes_fit((*shape, *(1 for _ in axes)), axes)


def _axes_fit(shape: Shape | None, axes: Any) -> bool:
    if shape is None or axes is None:
        return True
    places = [int(axis) for axis in np.asarray(axes).reshape(-1)]
    if any(not -len(shape) <= axis < len(shape) for axis in places):
        return False
    return len({axis % len(shape) for axis in places}) == len(places)


def _slice(given: Operands) -> bool:
    """Starts, ends, axes and steps are vectors of one length, axes are each once, steps are not 0."""
    lengths = {shape for at in range(1, 5) if (shape := given.shape(at)) is not None}
    steps = given.value(4)
    if len(lengths) > 1 or not _vectors(1, 2, 3, 4)(given) or (steps is not None and not steps.all()):
        return False
    return _axes_fit(given.shape(0), given.value(3))


def _axis(default: int) -> Callable[[Operands], bool]:
    """The attribute `axis` is within the rank of the first input."""
    return lambda given: _axes_fit(given.shape(0), [given.get("axis", default)])


def _layer_normalization(given: Operands) -> bool:
    """Scale and bias broadcast to the normalized axes."""
    shape, axis = given.shape(0), given.get("axis", -1)
    if not _axes_fit(shape, [axis]):
        return False
    if shape is None:
        return True
    normalized = shape[axis % len(shape) :]
    return all(_broadcasts(scale, normalized) for at in (1, 2) if (scale := given.shape(at)) is not None)


def _broadcasts(shape: Shape, to: Shape) -> bool:
    """Whether a shape broadcasts to another without changing it."""
    pairs = zip(reversed(shape), reversed(to), strict=False)
    return len(shape) <= len(to) and all(one in (1, other) for one, other in pairs)


def _affine_grid(given: Operands) -> bool:
    """One matrix for each image: [N, 2, 3] for N, C, H, W, or [N, 3, 4]; sizes are positive."""
    theta, size = given.shape(0), given.value(1)
    if size is not None and (size.ndim != 1 or size.size not in (4, 5) or not (size > 0).all()):
        return False
    if theta is None or size is None:
        return True
    return theta == (int(size[0]), size.size - 2, size.size - 1)


def _scatter_nd(given: Operands) -> bool:
    """Updates have the shape indices.shape[:-1] + data.shape[indices.shape[-1]:]."""
    data, indices, updates = given.shape(0), given.shape(1), given.shape(2)
    if data is None or indices is None:
        return True
    if not indices or not data or indices[-1] > len(data):
        return False
    fits = updates is None or updates == (*indices[:-1], *data[indices[-1] :])
    return fits and _indices_fit(given.value(1), data[: indices[-1]])


def _gather_nd(given: Operands) -> bool:
    """Indices are within the axes after `batch_dims`."""
    data, indices, batch = given.shape(0), given.shape(1), given.get("batch_dims", 0)
    if data is None or indices is None:
        return True
    if not indices or batch >= min(len(data), len(indices)) or batch + indices[-1] > len(data):
        return False
    return data[:batch] == indices[:batch] and _indices_fit(given.value(1), data[batch : batch + indices[-1]])


def _indices_fit(indices: Array | None, lengths: Shape) -> bool:
    """Whether index vectors are within these lengths."""
    if indices is None or not indices.size:
        return True
    bounds = np.array(lengths)
    return bool(((indices >= -bounds) & (indices < bounds)).all())


def _gather(given: Operands) -> bool:
    """Indices are within the axis."""
    return _axis(0)(given) and _indices_on_axis(given)


def _indices_on_axis(given: Operands) -> bool:
    shape = given.shape(0)
    return shape is None or _indices_fit(given.value(1), (shape[given.get("axis", 0)],))


def _gather_elements(given: Operands) -> bool:
    """Indices have the rank of the data, are as long on other axes at most, and within the axis."""
    data, indices = given.shape(0), given.shape(1)
    if not _gather(given) or data is None or indices is None:
        return data is None or _gather(given)
    axis = given.get("axis", 0) % len(data)
    pairs = zip(indices, data, strict=False)
    return len(data) == len(indices) and all(
        one <= other for at, (one, other) in enumerate(pairs) if at != axis
    )


def _scatter_elements(given: Operands) -> bool:
    """As for gathering, with an update for each index."""
    indices, updates = given.shape(1), given.shape(2)
    return _gather_elements(given) and (indices is None or updates is None or indices == updates)


def _mod(given: Operands) -> bool:
    """Of floats only `fmod` is defined before opset 28, and nothing of integers by 0."""
    divisor = given.value(1)
    if given.dtype(0).startswith(("float", "bfloat")):
        return given.opset >= 28 or bool(given.get("fmod", 0))
    return divisor is None or bool(divisor.all())


def _division(given: Operands) -> bool:
    """Integers are not divided by 0, which has no quotient among them."""
    divisor = given.value(1)
    return divisor is None or given.dtype(0).startswith(("float", "bfloat")) or bool(divisor.all())


def _divides_by_scale(place: int, given: Operands) -> bool:
    """No scale that divides is 0: no integer stands for 0 / 0. Scales of eight bits are powers of two."""
    scale = given.value(place)
    return scale is None or given.dtype(place).startswith("float8") or bool(scale.all())


def _quantization(given: Operands) -> bool:
    """Scales are not 0; besides, as for the inverse."""
    return _divides_by_scale(1, given) and _dequantization(given)


def _dynamic_quantization(given: Operands) -> bool:
    """Some number is not 0: the scale of zeros is 0, and divides."""
    x = given.value(0)
    return x is None or not x.size or bool(x.any())


def _quantized_product(given: Operands) -> bool:
    """The scale of the result is not 0."""
    return _divides_by_scale(6, given)


def _quantized_matrix_product(given: Operands) -> bool:
    """Besides, "scale and zero point must have same shape", where one number may be in a list."""
    pairs = [(given.shape(at), given.shape(at + 1)) for at in (1, 4, 6)]
    single = {(), (1,)}
    agree = all(None in pair or pair[0] == pair[1] or single.issuperset(pair) for pair in pairs)
    return agree and _quantized_product(given)


def _dequantization(given: Operands) -> bool:
    """A zero point for each scale; a scale for all, for each index of the axis, or for each block."""
    x, scale, zero = given.shape(0), given.shape(1), given.shape(2)
    if scale is None:
        return True
    single = {(), (1,)}  # ONNX's own tests mix the two
    if zero is not None and zero != scale and not {zero, scale} <= single:
        return False
    axis, block = given.get("axis", 1), given.get("block_size", 0)
    if not scale or (scale == (1,) and not block):
        return not block  # "Used only for blocked quantization"
    if x is None:
        return True
    if not _axes_fit(x, [axis]):
        return bool(block) and len(scale) == len(x)
    if not block:
        return scale == (x[axis],)
    if len(scale) != len(x):
        return False
    # "The accepted range is [ceil(Di/Si), ceil(Di/(Si-1))-1]", which are the blocks that make Si of Di.
    blocks = [length if at != axis % len(x) else -(-length // block) for at, length in enumerate(x)]
    return block > 0 and scale == tuple(blocks)


def _upsample(given: Operands) -> bool:
    """Scales are a vector with a number of at least 1 for each axis."""
    shape, scales = given.shape(0), given.get("scales", given.value(1))
    if scales is None:
        return True
    fits = shape is None or np.shape(scales) == (len(shape),)
    return fits and bool((np.asarray(scales) >= 1).all())


def _max_unpool(given: Operands) -> bool:
    """An index for each value; the output's shape is a vector with a length for each axis, none shorter than
    the pooled data was at least.
    """
    x, lengths, wanted = given.shape(0), given.shape(2), given.value(2)
    if x is None:
        return True
    if given.shape(1) not in (None, x) or lengths not in (None, (len(x),)):
        return False
    kernel = given.get("kernel_shape") or ()
    if wanted is None or len(kernel) != len(x) - 2:
        return True
    strides, pads = given.get("strides") or (1,) * len(kernel), given.get("pads") or (0,) * 2 * len(kernel)
    padded = zip(pads, pads[len(kernel) :], strict=False)
    least = [
        stride * (size - 1) + window - sum(pad)
        for size, stride, window, pad in zip(x[2:], strides, kernel, padded, strict=False)
    ]
    return all(length >= one for length, one in zip(wanted[2:], least, strict=True))


def _one_hot(given: Operands) -> bool:
    """There is at least one class, and two values."""
    depth = given.value(1)
    if given.shape(1) not in (None, (), (1,)) or given.shape(2) not in (None, (2,)):
        return False
    return depth is None or bool((depth >= 1).all())


def _loss(given: Operands) -> bool:
    """A target for each score of a class, a weight for each class; targets are classes or the ignored one."""
    scores, shape, targets = given.shape(0), given.shape(1), given.value(1)
    if scores is None:
        return True
    if len(scores) < 2 or shape not in (None, (scores[0], *scores[2:])):
        return False
    if given.shape(2) not in (None, (scores[1],)):
        return False
    if targets is None:
        return True
    ignored = given.get("ignore_index")
    classes = (targets >= 0) & (targets < scores[1])
    return bool((classes if ignored is None else classes | (targets == ignored)).all())


def _kernel_fits(given: Operands, filters: int = 1) -> bool:
    """The attribute `kernel_shape`, if there is one, is that of the filters."""
    kernel, shape = given.get("kernel_shape"), given.shape(filters)
    return kernel is None or shape is None or tuple(kernel) == shape[2:]


def _convolution(given: Operands, filters: int = 1, bias: int = 2) -> bool:
    """Batch, channels and at least one more axis; filters divide into the groups, each has a bias."""
    x, w, group, b = given.shape(0), given.shape(filters), given.get("group", 1), given.shape(bias)
    if x is None or w is None:
        return True
    if len(x) < 3 or len(w) != len(x) or group <= 0 or not _kernel_fits(given, filters):
        return False
    return x[1] == w[1] * group and w[0] % group == 0 and b in (None, (w[0],))


def _integer_convolution(given: Operands) -> bool:
    """Besides, zero points of the filters are for all or for each."""
    return _convolution(given, bias=4) and _for_all_or_each(given, 1, (3,))


def _quantized_convolution(given: Operands) -> bool:
    """Besides, scales of the filters are for all or for each, too, and that of the result is not 0."""
    agree = _convolution(given, filters=3, bias=8) and _for_all_or_each(given, 3, (4, 5))
    return agree and _quantized_product(given)


def _for_all_or_each(given: Operands, filters: int, places: Iterable[int]) -> bool:
    shape = given.shape(filters)
    return not shape or all(given.shape(place) in (None, (), (1,), shape[:1]) for place in places)


def _cast(given: Operands) -> bool:
    """The attribute `saturate` applies to 8-bit floats only."""
    return given.get("saturate", 1) == 1 or given.output_dtype.startswith("float8")


def _range(given: Operands) -> bool:
    """All inputs are scalars."""
    return all(given.shape(at) in (None, ()) for at in range(3))


def _roi_align(given: Operands) -> bool:
    """Regions have an area: without `sampling_ratio` an empty one is an average of no samples."""
    regions = given.value(1)
    if regions is None or regions.shape[1:] != (4,) or given.get("sampling_ratio", 0):
        return True
    return bool((regions[:, 2:] > regions[:, :2]).all())


def _center_crop_pad(given: Operands) -> bool:
    """A length for each of the axes, each within the rank and once."""
    shape, axes, lengths = given.shape(0), given.get("axes"), given.shape(1)
    count = len(axes) if axes is not None else None if shape is None else len(shape)
    return _axes_fit(shape, axes) and (lengths is None or count is None or lengths == (count,))


def _optimizer(states: int) -> Callable[[Operands], bool]:
    """A rate and a count, then tensors, their gradients and their states: of one shape for each tensor."""

    def rule(given: Operands) -> bool:
        tensors, rest = divmod(given.inputs - 2, 2 + states)
        if rest:
            return False
        groups = [range(2 + first, given.inputs, tensors) for first in range(tensors)]
        shapes = [{shape for at in group if (shape := given.shape(at)) is not None} for group in groups]
        return all(given.shape(at) in (None, ()) for at in (0, 1)) and all(len(one) <= 1 for one in shapes)

    return rule


def _transpose(given: Operands) -> bool:
    """The attribute `perm` has each axis once; a shape that is open has axes."""
    shape, perm = given.shape(0), given.get("perm")
    if shape is None and perm is not None and len(perm) == 0:
        return False
    return shape is None or perm is None or sorted(perm) == list(range(len(shape)))


def _local_response_normalization(given: Operands) -> bool:
    """Batch, channels and at least one more axis."""
    shape = given.shape(0)
    return shape is None or len(shape) >= 3


_RULES: dict[str, Callable[[Operands], bool]] = {
    "AffineGrid": _affine_grid,
    "ArgMax": _axis(0),
    "ArgMin": _axis(0),
    "Attention": attention,
    "AveragePool": pool_windows_hold_data,
    "BatchNormalization": _channel_vectors,
    "Cast": _cast,
    "CastLike": _cast,
    "CenterCropPad": _center_crop_pad,
    "ConstantOfShape": _vectors(0),
    "Conv": _convolution,
    "ConvInteger": _integer_convolution,
    "ConvTranspose": transposed_convolution_fits,
    "DeformConv": _kernel_fits,
    "DequantizeLinear": _dequantization,
    "Div": _division,
    "DynamicQuantizeLinear": _dynamic_quantization,
    "Expand": _vectors(1),
    "GRU": recurrent(3),
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "Hardmax": _axis(-1),
    "InstanceNormalization": _instance_normalization,
    "LRN": _local_response_normalization,
    "LSTM": recurrent(4),
    "LayerNormalization": _layer_normalization,
    "LogSoftmax": _axis(-1),
    "LpNormalization": _axis(-1),
    "LpPool": pool_windows_hold_data,
    "MaxPool": pool_windows_hold_data,
    "MaxUnpool": _max_unpool,
    "Mod": _mod,
    "NegativeLogLikelihoodLoss": _loss,
    "NonMaxSuppression": _non_max_suppression,
    "OneHot": _one_hot,
    "Pad": _vectors(1, 3),
    "QLinearConv": _quantized_convolution,
    "QLinearMatMul": _quantized_matrix_product,
    "QuantizeLinear": _quantization,
    "ReverseSequence": reverse_sequence,
    "RMSNormalization": _layer_normalization,
    "RNN": recurrent(1),
    "Range": _range,
    "Reshape": _vectors(1),
    "Resize": _resize,
    "RoiAlign": _roi_align,
    "RotaryEmbedding": rotary_embedding,
    "STFT": _stft,
    "Scan": scan,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "Slice": _slice,
    "Softmax": _axis(-1),
    "SoftmaxCrossEntropyLoss": _loss,
    "Split": _split,
    "Squeeze": _reduction,
    "TfIdfVectorizer": n_grams,
    "Tile": _tile,
    "TopK": _axis(-1),
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
    "Upsample": _upsample,
} | dict.fromkeys(
    (
        "ReduceL1",
        "ReduceL2",
        "ReduceLogSum",
        "ReduceLogSumExp",
        "ReduceMax",
        "ReduceMean",
        "ReduceMin",
        "ReduceProd",
        "ReduceSum",
        "ReduceSumSquare",
    ),
    _reduction,
)

_TRAINING_RULES = {"Adagrad": _optimizer(1), "Adam": _optimizer(2), "Momentum": _optimizer(1)}
