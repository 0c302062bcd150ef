"""Inputs for ONNX models recorded without any: recipes within each operator's domain.

OPERA draws floats from U[0, 1) and integers from {0, 1} for all operators (its released harness). Here floats
lie in [-1, 1), to cover both signs, except where the standard leaves the result open or the reference
refuses: roots, logarithms, divisors, variances, indices. An input that decides a shape is not drawn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fuzzing.cases import Input, Recipe, Tensor
from fuzzing.cases.values import CARRIERS, RAW_DTYPES, STRING

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto


class CannotDrawError(Exception):
    """No value can be drawn; the text is the skip's reason."""


@dataclass(frozen=True)
class Bounds:
    """Ranges of values: [low, high) for floats, [low, high] for integers."""

    low: float
    high: float


_FLOATS = Bounds(-1.0, 1.0)
_WHOLE = Bounds(0, 1)  # OPERA's
_POSITIVE = Bounds(0.1, 2.0)
_DIVISOR = Bounds(1, 7)

#: Inputs whose value, by the standard, decides a shape.
_SHAPES = frozenset(
    {("Reshape", 1), ("Expand", 1), ("Tile", 1), ("ConstantOfShape", 0), ("Range", 0), ("Range", 1)}
    | {("Range", 2), ("OneHot", 1), ("TopK", 1), ("Split", 1), ("SplitToSequence", 1), ("Pad", 1)}
    | {("Pad", 3), ("Slice", 1), ("Slice", 2), ("Slice", 3), ("Slice", 4), ("Squeeze", 1)}
    | {("Unsqueeze", 1), ("Resize", 1), ("Resize", 2), ("Resize", 3), ("Upsample", 1), ("AffineGrid", 1)}
    | {("CenterCropPad", 1), ("Col2Im", 1), ("Col2Im", 2), ("MaxUnpool", 1), ("MaxUnpool", 2)}
    | {("BlackmanWindow", 0), ("HannWindow", 0), ("HammingWindow", 0), ("MelWeightMatrix", 0)}
    | {("MelWeightMatrix", 1), ("MelWeightMatrix", 2), ("DFT", 1), ("STFT", 1), ("STFT", 3)}
    | {("NonMaxSuppression", 2), ("DFT", 2)}
)
#: Operators whose second input, from opset 13 or 18 on, holds the axes to reduce.
_REDUCTIONS = "Reduce"

#: Bounds by operator and place of the input. For whole numbers as for floats.
_DOMAINS: Mapping[tuple[str, int], Bounds] = {
    ("Acosh", 0): Bounds(1.0, 3.0),
    ("Atanh", 0): Bounds(-0.9, 0.9),
    ("Log", 0): _POSITIVE,
    ("Sqrt", 0): _POSITIVE,
    ("Reciprocal", 0): _POSITIVE,
    ("Pow", 0): _POSITIVE,
    ("Div", 1): _DIVISOR,
    ("Mod", 1): _DIVISOR,
    ("BatchNormalization", 4): Bounds(0.5, 1.5),
    ("ReduceLogSum", 0): _POSITIVE,
    ("QuantizeLinear", 1): _POSITIVE,
    ("DequantizeLinear", 1): _POSITIVE,
    ("Bernoulli", 0): Bounds(0.0, 1.0),
    ("CumProd", 1): Bounds(0, 0),
    ("CumSum", 1): Bounds(0, 0),
    ("Loop", 0): Bounds(1, 3),
    ("Dropout", 1): Bounds(0.0, 0.9),
    ("RoiAlign", 2): Bounds(0, 0),
}

#: Places of inputs that index another: operator and place, then the place indexed and the attribute that
#: names the axis, "" for all of them.
_INDICES: Mapping[tuple[str, int], tuple[int, str]] = {
    ("Gather", 1): (0, "axis"),
    ("GatherElements", 1): (0, "axis"),
    ("ScatterElements", 1): (0, "axis"),
    ("Scatter", 1): (0, "axis"),
    ("GatherND", 1): (0, ""),
    ("ScatterND", 1): (0, ""),
    ("NegativeLogLikelihoodLoss", 1): (0, "class"),
    ("SoftmaxCrossEntropyLoss", 1): (0, "class"),
}
_CLASS_AXIS = 1  # of the two losses: (N, C, d1, …)


def draw_input(
    node: NodeProto, place: int, dtype: str, shape: tuple[int, ...], shapes: Sequence[tuple[int, ...] | None]
) -> Input:
    """A value for the input at `place` of `node`; `shapes` are those of all its inputs.

    Raises CannotDrawError where an arbitrary value would be useless.
    """
    if (node.op_type, place) in _SHAPES or (node.op_type.startswith(_REDUCTIONS) and place == 1):
        raise CannotDrawError("an input decides the shape of an output, and its value is not known")
    whole = dtype.startswith(("int", "uint"))
    bounds = _DOMAINS.get((node.op_type, place))
    if bounds is None and whole:
        bounds = _indices(node, place, shapes)
    if bounds is None:
        bounds = _WHOLE if whole else _FLOATS
    return draw(dtype, shape, bounds, place)


def draw(dtype: str, shape: tuple[int, ...], bounds: Bounds, seed: int) -> Input:
    """Numbers between bounds, in any element type. Raises CannotDrawError for a type without numbers."""
    if dtype == STRING:
        return _strings(shape)
    if dtype == "bool":
        return Recipe("integers", dtype, shape, 0, 1, seed)
    if dtype in RAW_DTYPES or dtype.startswith("complex"):
        return _converted(dtype, shape, bounds, seed)
    if np.dtype(CARRIERS[dtype]).kind in "iu":
        return Recipe("integers", dtype, shape, math.ceil(bounds.low), math.floor(bounds.high), seed)
    return Recipe("uniform", dtype, shape, bounds.low, bounds.high, seed)


def draw_graph_input(graph: GraphProto, name: str, dtype: str, shape: tuple[int, ...], seed: int) -> Input:
    """A value for a graph's input, within the domain of the first operator that takes it."""
    known = {item.name: static_shape(item) for item in (*graph.input, *graph.value_info)}
    for node in graph.node:
        if name in node.input:
            place = list(node.input).index(name)
            value = draw_input(node, place, dtype, shape, [known.get(other) for other in node.input])
            if isinstance(value, Recipe):
                return Recipe(value.kind, value.dtype, value.shape, value.low, value.high, seed)
            return value
    return draw(dtype, shape, _WHOLE if dtype.startswith(("int", "uint")) else _FLOATS, seed)


def static_shape(item: object) -> tuple[int, ...] | None:
    """The shape in a ValueInfoProto, 2 for each unknown dimension; None if it has none."""
    kind = item.type.tensor_type  # type: ignore[attr-defined]
    if not kind.HasField("shape"):
        return None
    known = (dim.dim_value if dim.HasField("dim_value") else -1 for dim in kind.shape.dim)
    return tuple(UNKNOWN_DIM if size < 0 else size for size in known)  # exporters write -1, too


#: What stands for a dimension that a model leaves open: the least at which batches show.
UNKNOWN_DIM = 2


def _indices(node: NodeProto, place: int, shapes: Sequence[tuple[int, ...] | None]) -> Bounds | None:
    if (node.op_type, place) not in _INDICES:
        return None
    target, how = _INDICES[node.op_type, place]
    shape = shapes[target] if target < len(shapes) else None
    if not shape:
        raise CannotDrawError("an input indexes another whose shape is not known")
    sizes = [shape[axis] for axis in _axes(node, how, len(shape))]
    if min(sizes) < 1:
        return Bounds(0, 0)
    return Bounds(0, min(sizes) - 1)


def _axes(node: NodeProto, how: str, rank: int) -> Sequence[int]:
    if how == "axis":
        given = [attribute.i for attribute in node.attribute if attribute.name == "axis"]
        axis = given[0] if given else 0
        return [axis] if -rank <= axis < rank else range(rank)
    if how == "class" and rank > _CLASS_AXIS:
        return [_CLASS_AXIS]
    return range(rank)


def _converted(dtype: str, shape: tuple[int, ...], bounds: Bounds, seed: int) -> Tensor:
    """For types that recipes cannot draw: floats rounded, integers cut, by numpy's extension types."""
    import ml_dtypes

    if dtype.startswith(("int", "uint")):
        array = Recipe("integers", "int64", shape, math.ceil(bounds.low), math.floor(bounds.high), seed)
    else:
        array = Recipe("uniform", "float32", shape, bounds.low, bounds.high, seed)
    target = np.dtype(getattr(ml_dtypes, dtype)) if dtype in RAW_DTYPES else np.dtype(dtype)
    return Tensor.of(array.draw().array().astype(target), dtype)


def _strings(shape: tuple[int, ...]) -> Tensor:
    size = math.prod(shape)
    words = np.array(["ab" * (place % 4) for place in range(size)], dtype=object)
    return Tensor.of(words.reshape(shape))
