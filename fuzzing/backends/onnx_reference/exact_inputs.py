"""Inputs of models that no rounding reaches before an operator decides by them: Floor of an input.

Moved inputs stand for the roundings of what is computed from them (`fuzzing.oracles.perturbation`). Where
only operators that compute exactly read an input, there are none, and a tie or threshold that it hits is
decided by the standard alone. The operators are those whose page in the ONNX reference has one right result
for each input, ties included. MaxPool is left out: its page does not say which of equal elements its indices
name. ThresholdedRelu is, too: its threshold is an attribute, which compilers round to the type of the input.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

#: Regions of such coordinates leave half of the bits of float32 to what is made of them.
_LARGEST, _FINEST = 2.0**8, 2.0**-4
#: They move numbers, compare them, or take the next integer.
_EXACT = frozenset(
    {
        "Abs",
        "And",
        "ArgMax",
        "ArgMin",
        "Ceil",
        "CenterCropPad",
        "Clip",
        "Compress",
        "Concat",
        "DepthToSpace",
        "Equal",
        "Expand",
        "EyeLike",
        "Flatten",
        "Floor",
        "Gather",
        "GatherElements",
        "GatherND",
        "GlobalMaxPool",
        "Greater",
        "GreaterOrEqual",
        "Hardmax",
        "Identity",
        "IsInf",
        "IsNaN",
        "Less",
        "LessOrEqual",
        "Max",
        "Min",
        "Neg",
        "NonZero",
        "Not",
        "OneHot",
        "Or",
        "Pad",
        "ReduceMax",
        "ReduceMin",
        "Relu",
        "Reshape",
        "ReverseSequence",
        "Round",
        "Shape",
        "Sign",
        "Size",
        "Slice",
        "SpaceToDepth",
        "Split",
        "Squeeze",
        "Tile",
        "TopK",
        "Transpose",
        "Trilu",
        "Unique",
        "Unsqueeze",
        "Where",
        "Xor",
    }
)
#: onnx.TensorProto: the types that a cast rounds to in one way, towards 0.
_DISCRETE = frozenset({2, 3, 4, 5, 6, 7, 9, 12, 13})


def find_exact_inputs(model: bytes, given: Mapping[str, Any]) -> frozenset[str]:
    """The names of the inputs that only operators that compute exactly read, directly or through others.

    given  the inputs that are float tensors
    """
    import onnx
    from onnx import numpy_helper

    graph = onnx.load_from_string(model).graph
    known = dict(given)
    for tensor in graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.dtype.name in ("float16", "float32", "float64"):
            known[tensor.name] = array
    rounded: set[str] = set()
    for node in reversed(graph.node):
        if not node.domain and node.op_type == "RoiAlign" and _has_exact_places(node, known):
            rounded.add(node.input[0])
        elif not _is_exact(node, known) or not rounded.isdisjoint(node.output):
            rounded.update(_read(node))
    return frozenset(item.name for item in graph.input) - rounded


def computes_exactly(node: Any) -> bool:
    """Whether a node's operator computes exactly, whatever it reads."""
    return not node.domain and node.op_type in _EXACT


def _is_exact(node: Any, known: Mapping[str, Any]) -> bool:
    if node.domain:
        return False
    if node.op_type == "Cast":
        return any(item.name == "to" and item.i in _DISCRETE for item in node.attribute)
    if node.op_type == "QuantizeLinear":
        steps = known.get(node.input[1])
        return steps is not None and _are_powers(steps)
    return node.op_type in _EXACT


def _has_exact_places(node: Any, known: Mapping[str, Any]) -> bool:
    """Whether the places that a RoiAlign samples are found without a rounding, in whatever order.

    All divisors are powers of two: the lengths of the output, and the number of samples, which without
    `sampling_ratio` is "ceil(roi_width / output_width)".
    """
    regions = known.get(node.input[1])
    if regions is None or regions.ndim != 2 or regions.shape[1] != 4:
        return False
    set_ = {item.name: item.f if item.name == "spatial_scale" else item.i for item in node.attribute}
    scaled = regions.astype(np.float64) * set_.get("spatial_scale", 1.0)
    lengths = np.array([set_.get("output_width", 1), set_.get("output_height", 1)])
    if not np.isfinite(scaled).all() or (np.abs(scaled) > _LARGEST).any() or (scaled % _FINEST).any():
        return False
    parts = (scaled[:, 2:] - scaled[:, :2]) / lengths
    samples = set_.get("sampling_ratio", 0) or np.maximum(np.ceil(parts), 1)
    return _are_powers(lengths) and _are_powers(np.asarray(samples))


def _read(node: Any) -> Iterator[str]:
    """What a node reads, and what its bodies do."""
    yield from node.input
    for item in node.attribute:
        for body in (*([item.g] if item.HasField("g") else []), *item.graphs):
            for inner in body.node:
                yield from _read(inner)


def _are_powers(numbers: Any) -> bool:
    """Whether all are powers of two."""
    return bool((np.frexp(numbers)[0] == 0.5).all())
