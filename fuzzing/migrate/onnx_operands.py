"""Operands that ONNX allows and that none of its node tests has."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from onnx import NodeProto

Values = dict[str, Any]


class _QuantizedWeights(NamedTuple):
    """Places of an operator's inputs, and the axis of output channels in its weights."""

    weights: int
    channels: int
    zero_point: int
    scale: int | None = None
    bias: int | None = None


_QUANTIZED = {
    "ConvInteger": _QuantizedWeights(1, 0, 3),
    "MatMulInteger": _QuantizedWeights(1, -1, 3),
    "QLinearConv": _QuantizedWeights(3, 0, 5, scale=4, bias=8),
    "QLinearMatMul": _QuantizedWeights(3, -1, 5, scale=4),
}


def quantize_by_channel(node: NodeProto, values: Values) -> tuple[NodeProto, Values] | None:
    """The node and its inputs with a scale and a zero point for each output channel; None for other
    operators, and for convolutions in groups.

    A convolution of one filter gets another, the same one backwards.
    """
    import onnx

    places = _QUANTIZED.get(node.op_type)
    if places is None or any(one.name == "group" and one.i > 1 for one in node.attribute):
        return None
    found, changed = onnx.NodeProto(), dict(values)
    found.CopyFrom(node)
    found.input.extend([""] * (places.zero_point + 1 - len(found.input)))
    found.input[places.zero_point] = found.input[places.zero_point] or "zero_points"
    weights, zero_points = found.input[places.weights], found.input[places.zero_point]
    if places.channels == 0:
        changed[weights] = np.concatenate([values[weights], np.flip(values[weights])])
        if places.bias is not None and places.bias < len(node.input):
            changed[node.input[places.bias]] = np.tile(values[node.input[places.bias]], 2)
    shape = changed[weights].shape
    channels = np.arange(shape[places.channels])
    if len(shape) > 2 and places.channels < 0:  # of a stack of matrices, each of which has its own
        channels = np.arange(math.prod((*shape[:-2], shape[-1]))).reshape(*shape[:-2], 1, shape[-1])
    before = np.ravel(values.get(zero_points, np.zeros(1, values[weights].dtype)))[:1]
    changed[zero_points] = (before + channels).astype(before.dtype)
    if places.scale is not None:
        scale = values[node.input[places.scale]]
        factors = 1 + channels / 2
        changed[node.input[places.scale]] = (np.ravel(scale)[:1] * factors).astype(scale.dtype)
    return found, changed


def add_optional_inputs(node: NodeProto, values: Values) -> Iterator[tuple[str, NodeProto, Values]]:
    """The name of each missing optional input that can be given, and the node and its inputs with it."""
    import onnx

    for (operator, place), make in _OPTIONAL.items():
        missing = place >= len(node.input) or not node.input[place]
        if operator != node.op_type or not missing or (value := make(node, values)) is None:
            continue
        found = onnx.NodeProto()
        found.CopyFrom(node)
        found.input.extend([""] * (place + 1 - len(found.input)))
        formal = onnx.defs.get_schema(node.op_type, node.domain).inputs[place].name
        found.input[place] = f"{formal}_given"
        yield formal, found, values | {found.input[place]: value}


def _attribute(node: NodeProto, name: str, default: int) -> int:
    return next((int(one.i) for one in node.attribute if one.name == name), default)


def _lengths(node: NodeProto, values: Values) -> Any:
    """The length of each sequence: all there is, as ONNX's evaluator takes no shorter ones."""
    steps, batch = values[node.input[0]].shape[:2]
    if _attribute(node, "layout", 0):
        steps, batch = batch, steps
    return np.full(batch, steps, np.int32)


def _state(node: NodeProto, values: Values) -> Any:
    """The first state of each direction, sequence and hidden unit."""
    x, weights = values[node.input[0]], values[node.input[2]]
    directions, hidden = weights.shape[0], weights.shape[2]
    first_batch = bool(_attribute(node, "layout", 0))
    shape = (x.shape[0], directions, hidden) if first_batch else (directions, x.shape[1], hidden)
    return np.linspace(-0.5, 0.5, math.prod(shape), dtype=x.dtype).reshape(shape)


def _longer_transform(node: NodeProto, values: Values) -> Any:
    return np.array(max(values[node.input[0]].shape) + 1, np.int64)


def _bias(node: NodeProto, values: Values) -> Any:
    return 10 * (1 + np.arange(values[node.input[3]].shape[0], dtype=np.int32))


#: Operator and place of an optional input → a value for it.
_OPTIONAL: dict[tuple[str, int], Callable[[NodeProto, Values], Any]] = {
    ("DFT", 1): _longer_transform,
    ("QLinearConv", 8): _bias,
    **{(operator, 4): _lengths for operator in ("GRU", "LSTM", "RNN")},
    **{(operator, 5): _state for operator in ("GRU", "LSTM", "RNN")},
}
