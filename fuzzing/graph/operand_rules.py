"""Rules of ONNX about the operands of one node, which its own shape inference does not enforce.

ONNX's reference evaluator runs models that the standard forbids: a Split into more parts than there are
elements, a Resize by 0. A compiler that rejects such a model has no bug. The rules are those of the
operators' pages in the ONNX reference (https://onnx.ai/onnx/operators/). A rule holds where what it is about
is unknown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np

from fuzzing.graph.axis_rules import (
    accumulation,
    axes_fit,
    axis_fits,
    center_crop_pad,
    pad,
    reduction,
    scalars,
    slices,
    transpose,
    unsqueeze,
    vectors,
)
from fuzzing.graph.index_rules import (
    gather,
    gather_elements,
    gather_nd,
    one_hot,
    roi_align,
    scatter_elements,
    scatter_nd,
    top_k,
)
from fuzzing.graph.ir import Graph, Node
from fuzzing.graph.operands import Operands, Shape, ValueOf
from fuzzing.graph.sequence_rules import (
    attention,
    n_grams,
    recurrent,
    reverse_sequence,
    rotary_embedding,
    scan,
)
from fuzzing.graph.window_rules import (
    columns_fit_image,
    global_pool_has_axes,
    pool_windows_hold_data,
    transposed_convolution_fits,
    windows_are_whole,
)

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


#: Operators with the attributes of windows.
_WINDOWED = frozenset(
    {
        "AveragePool",
        "Conv",
        "ConvInteger",
        "ConvTranspose",
        "DeformConv",
        "LpPool",
        "MaxPool",
        "MaxUnpool",
        "QLinearConv",
    }
)
#: What attributes may be, where ONNX's evaluator takes anything else as one of these.
_CHOICES: dict[tuple[str, str], tuple[object, ...]] = {
    ("Gelu", "approximate"): ("none", "tanh", b"none", b"tanh"),
    ("LpNormalization", "p"): (1, 2),
}


def obeys_rules(graph: Graph, node: Node, value_of: ValueOf) -> bool:
    """Whether a node obeys the rules of its operator."""
    if node.domain:
        rule = _TRAINING_RULES.get(node.op) if node.domain == "ai.onnx.preview.training" else None
        return rule is None or rule(Operands(graph, node, value_of))
    if any(value not in (0, 1) for name, value in node.attributes.items() if name in _SWITCHES):
        return False
    if any(node.attributes[name] not in allowed for name, allowed in _choices(node)):
        return False
    rule, given = _RULES.get(node.op), Operands(graph, node, value_of)
    try:
        if node.op in _WINDOWED and not windows_are_whole(given):
            return False
        return rule is None or rule(given)
    except (ArithmeticError, LookupError, ValueError):
        return False  # strides of 0, or too many of them: the rules' formulas are for what the types allow


def _choices(node: Node) -> list[tuple[str, tuple[object, ...]]]:
    return [(name, _CHOICES[node.op, name]) for name in node.attributes if (node.op, name) in _CHOICES]


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


def _split_to_sequence(given: Operands) -> bool:
    """Parts of one length are longer than 0; a list of lengths, none negative, adds up to the axis."""
    shape, parts = given.shape(0), given.value(1)
    if shape is not None and not axes_fit(shape, [given.get("axis", 0)]):
        return False
    if parts is None:
        return True
    if parts.ndim == 0:
        return bool(parts > 0)
    if parts.ndim != 1 or bool((parts < 0).any()):
        return False
    return shape is None or bool(parts.sum() == shape[given.get("axis", 0)])


def _resize(given: Operands) -> bool:
    """Scales and sizes are positive, one for each axis that is resized; what crops has a region,
    with two ends of each.
    """
    shape = given.shape(0)
    axes = given.get("axes")
    count = len(axes) if axes is not None else None if shape is None else len(shape)
    cropped = given.get("coordinate_transformation_mode") in (b"tf_crop_and_resize", "tf_crop_and_resize")
    region = given.shape(1) if cropped else None
    if cropped and not given.dtype(1):
        return False  # ONNX defines no default: compilers take all or nothing
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


def _layer_normalization(given: Operands) -> bool:
    """Scale and bias broadcast to the normalized axes."""
    shape, axis = given.shape(0), given.get("axis", -1)
    if not axes_fit(shape, [axis]):
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
    """Besides, each scale has a zero point of its shape."""
    return _scales_have_zero_points(given) and _quantized_product(given)


def _scales_have_zero_points(given: Operands) -> bool:
    """ "Each scale and zero-point pair must have same shape", where one number may be in a list."""
    pairs = [(given.shape(at), given.shape(at + 1)) for at in (1, 4, 6)]
    single = {(), (1,)}
    return all(None in pair or pair[0] == pair[1] or single.issuperset(pair) for pair in pairs)


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
        # "Used only for blocked quantization"; of vectors, too, the axis is 1 where none is given
        return not block and (x is None or axis == 1 or axes_fit(x, [axis]))
    if x is None:
        return True
    axis = 0 if axis == 1 == len(x) else axis  # where none is given
    if not axes_fit(x, [axis]):
        return False
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
    """Besides, scales of the filters are for all or for each, too, as their zero points are, and that of the
    result is not 0.
    """
    agree = _convolution(given, filters=3, bias=8) and _for_all_or_each(given, 3, (4, 5))
    return agree and _scales_have_zero_points(given) and _quantized_product(given)


def _for_all_or_each(given: Operands, filters: int, places: Iterable[int]) -> bool:
    shape = given.shape(filters)
    return not shape or all(given.shape(place) in (None, (), (1,), shape[:1]) for place in places)


def _cast(given: Operands) -> bool:
    """The attribute `saturate` applies to 8-bit floats only."""
    return given.get("saturate", 1) == 1 or given.output_dtype.startswith("float8")


def _loop(given: Operands) -> bool:
    """One number of iterations, and one condition."""
    return all((shape := given.shape(at)) is None or set(shape) <= {1} for at in (0, 1))


def _dropout(given: Operands) -> bool:
    """ "The ratio of random dropout, with value in [0, 1)", is a scalar; an attribute before opset 12."""
    ratio = given.get("ratio", given.value(1))
    return scalars(1, 2)(given) and (ratio is None or bool(np.all((np.asarray(ratio) >= 0) & (ratio < 1))))


def _integer_matrix_product(given: Operands) -> bool:
    """Zero points are for all, for each row of the left, or for each column of the right."""
    left, right, zero, other = (given.shape(at) for at in range(4))
    single = (None, (), (1,))
    rows = left is None or zero in single or zero == (*left[:-1], 1) or (len(left) == 2 and zero == left[:1])
    if right is None or other in single or (len(right) == 2 and other == right[1:]):
        return rows
    return rows and other == (*right[:-2], 1, *right[-1:])


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


def _local_response_normalization(given: Operands) -> bool:
    """Batch, channels and at least one more axis."""
    shape = given.shape(0)
    return shape is None or len(shape) >= 3


_RULES: dict[str, Callable[[Operands], bool]] = {
    "AffineGrid": _affine_grid,
    "ArgMax": axis_fits(0),
    "ArgMin": axis_fits(0),
    "Attention": attention,
    "AveragePool": pool_windows_hold_data,
    "BatchNormalization": _channel_vectors,
    "Cast": _cast,
    "CastLike": _cast,
    "CenterCropPad": center_crop_pad,
    "Clip": scalars(1, 2),
    "Col2Im": columns_fit_image,
    "ConstantOfShape": vectors(0),
    "Conv": _convolution,
    "ConvInteger": _integer_convolution,
    "ConvTranspose": transposed_convolution_fits,
    "CumProd": accumulation,
    "CumSum": accumulation,
    "DeformConv": _kernel_fits,
    "DequantizeLinear": _dequantization,
    "Div": _division,
    "Dropout": _dropout,
    "DynamicQuantizeLinear": _dynamic_quantization,
    "Expand": vectors(1),
    "GRU": recurrent(3),
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "GlobalAveragePool": global_pool_has_axes,
    "GlobalLpPool": global_pool_has_axes,
    "GlobalMaxPool": global_pool_has_axes,
    "Hardmax": axis_fits(-1),
    "InstanceNormalization": _instance_normalization,
    "LRN": _local_response_normalization,
    "LSTM": recurrent(4),
    "LayerNormalization": _layer_normalization,
    "LogSoftmax": axis_fits(-1),
    "Loop": _loop,
    "LpNormalization": axis_fits(-1),
    "LpPool": pool_windows_hold_data,
    "MatMulInteger": _integer_matrix_product,
    "MaxPool": pool_windows_hold_data,
    "MaxUnpool": _max_unpool,
    "Mod": _mod,
    "NegativeLogLikelihoodLoss": _loss,
    "NonMaxSuppression": _non_max_suppression,
    "OneHot": one_hot,
    "Pad": pad,
    "QLinearConv": _quantized_convolution,
    "QLinearMatMul": _quantized_matrix_product,
    "QuantizeLinear": _quantization,
    "ReverseSequence": reverse_sequence,
    "RMSNormalization": _layer_normalization,
    "RNN": recurrent(1),
    "Range": scalars(0, 1, 2),
    "Reshape": vectors(1),
    "Resize": _resize,
    "RoiAlign": roi_align,
    "RotaryEmbedding": rotary_embedding,
    "STFT": _stft,
    "Scan": scan,
    "ScatterElements": scatter_elements,
    "ScatterND": scatter_nd,
    "Slice": slices,
    "Softmax": axis_fits(-1),
    "SoftmaxCrossEntropyLoss": _loss,
    "Split": _split,
    "SplitToSequence": _split_to_sequence,
    "Squeeze": reduction,
    "TfIdfVectorizer": n_grams,
    "Tile": _tile,
    "TopK": top_k,
    "Transpose": transpose,
    "Unsqueeze": unsqueeze,
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
    reduction,
)

_TRAINING_RULES = {"Adagrad": _optimizer(1), "Adam": _optimizer(2), "Momentum": _optimizer(1)}
