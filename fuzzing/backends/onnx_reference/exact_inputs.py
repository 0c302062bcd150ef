"""Inputs of models that no rounding reaches before an operator decides by them: Floor of an input.

Moved inputs stand for the roundings of what is computed from them (`fuzzing.oracles.perturbation`). Where
only operators that compute exactly read an input, there are none, and a tie or threshold that it hits is
decided by the standard alone. The operators are those whose page in the ONNX reference has one right result
for each input, ties included. MaxPool is left out: its page does not say which of equal elements its indices
name. ThresholdedRelu is, too: its threshold is an attribute, which compilers round to the type of the input.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

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


def find_exact_inputs(model: bytes, powers: Iterable[str]) -> frozenset[str]:
    """The names of the inputs that only operators that compute exactly read, directly or through others.

    powers  inputs that hold powers of two, by which a QuantizeLinear divides exactly
    """
    import onnx

    graph = onnx.load_from_string(model).graph
    divisors = {*powers, *(tensor.name for tensor in graph.initializer if _has_powers(tensor))}
    rounded: set[str] = set()
    for node in reversed(graph.node):
        if not _is_exact(node, divisors) or not rounded.isdisjoint(node.output):
            rounded.update(_read(node))
    return frozenset(item.name for item in graph.input) - rounded


def _is_exact(node: Any, divisors: set[str]) -> bool:
    if node.domain:
        return False
    if node.op_type == "Cast":
        return any(item.name == "to" and item.i in _DISCRETE for item in node.attribute)
    if node.op_type == "QuantizeLinear":
        return node.input[1] in divisors
    return node.op_type in _EXACT


def _read(node: Any) -> Iterator[str]:
    """What a node reads, and what its bodies do."""
    yield from node.input
    for item in node.attribute:
        for body in (*([item.g] if item.HasField("g") else []), *item.graphs):
            for inner in body.node:
                yield from _read(inner)


def _has_powers(tensor: Any) -> bool:
    import numpy as np
    from onnx import numpy_helper

    array = numpy_helper.to_array(tensor)
    if array.dtype.name not in ("float16", "float32", "float64"):
        return False
    return bool((np.frexp(array)[0] == 0.5).all())
