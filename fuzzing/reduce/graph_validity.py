"""Checks that a candidate is a legal ONNX model.

ONNX's reference evaluator runs models that the standard forbids: a Split into more parts than there are
elements, a Resize by 0. A compiler that rejects such a model has no bug. The rules are those of the
operators' pages in the ONNX reference (https://onnx.ai/onnx/operators/); ONNX's own shape inference does not
enforce them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from fuzzing.errors import IllTypedError
from fuzzing.graph import Node, TensorType
from fuzzing.graph.transformations import retype
from fuzzing.graph.type_inference import find_specification, infer_output_types
from fuzzing.graph.types import ABSENT
from fuzzing.reduce.graph_state import GraphState, constant_to_tensor
from fuzzing.reduce.input_values import as_tensor

Array = np.ndarray[Any, Any]


def is_valid(state: GraphState) -> bool:
    """Whether a candidate breaks only rules that its original case breaks too."""
    return find_violations(state) <= state.tolerated


def find_violations(state: GraphState) -> frozenset[str]:
    """The rules that a graph breaks, each with its operator: `Split: parts`, `types`."""
    graph = state.graph
    found = {f"{node.op}: {rule}" for node in graph.nodes for rule in _broken_rules(state, node)}
    if found:
        return frozenset(found)  # ONNX's inference may crash on such a model
    try:
        inferred = retype(replace(graph, names={}))
    except IllTypedError:
        return frozenset({"types"})
    agree = all(_types_agree(one, other) for one, other in zip(graph.types, inferred.types, strict=True))
    legal = agree and not any(map(_is_negative, inferred.types))
    return frozenset() if legal else frozenset({"types"})


def _broken_rules(state: GraphState, node: Node) -> Iterator[str]:
    if any(_is_negative(state.graph.types[edge]) for edge in (*node.used_edges(), *node.outputs)):
        yield "negative length"
        return
    rule = _RULES.get(node.op) if not node.domain else None
    if rule is not None and not rule(_Operands(state, node)):
        yield "operands"
        return
    specification = find_specification(state.graph, node)
    if specification is None:
        return
    try:
        types = infer_output_types(state.graph, state.graph, node)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        yield "shapes"  # the specification's shape function has no result for operands that it does not allow
        return
    for edge, type_ in zip(node.outputs, types or (), strict=False):
        known = state.graph.types[edge]
        if _is_negative(type_) or (known != ABSENT and not _types_agree(known, type_)):
            yield "shapes"


def _types_agree(one: TensorType, other: TensorType) -> bool:
    """Whether an edge may have both types: equal, but for lengths that one of them leaves open."""
    if one.dtype != other.dtype or one.shape is None or other.shape is None:
        return one.dtype == other.dtype
    pairs = zip(one.shape, other.shape, strict=False)
    return one.rank == other.rank and all(a == b or None in (a, b) for a, b in pairs)


def _is_negative(type_: TensorType) -> bool:
    return any(length is not None and length < 0 for length in type_.shape or ())


class _Operands:
    """The operands of one node: shapes, attributes, and values if known."""

    def __init__(self, state: GraphState, node: Node) -> None:
        self._state, self._node = state, node

    @property
    def outputs(self) -> int:
        return len(self._node.outputs)

    def get(self, name: str, default: Any = None) -> Any:
        return self._node.attributes.get(name, default)

    def shape(self, place: int) -> tuple[int, ...] | None:
        """The lengths of an input; None if it is omitted or its shape is open."""
        edge = self._node.inputs[place] if place < len(self._node.inputs) else None
        return None if edge is None or not (type_ := self._state.graph.types[edge]).static else type_.lengths

    def value(self, place: int) -> Array | None:
        """The elements of an input that is a constant or an input of the graph; None for others."""
        edge = self._node.inputs[place] if place < len(self._node.inputs) else None
        if edge is None:
            return None
        graph = self._state.graph
        if edge in graph.constants:
            return constant_to_tensor(graph.constants[edge]).array()
        tensor = as_tensor(self._state.value(edge)) if edge in graph.inputs else None
        return None if tensor is None else tensor.array()


def _split(given: _Operands) -> bool:
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


def _resize(given: _Operands) -> bool:
    """Scales and sizes are positive, one for each axis that is resized."""
    shape = given.shape(0)
    axes = given.get("axes")
    count = len(axes) if axes is not None else None if shape is None else len(shape)
    for place in (2, 3):
        value = given.value(place)
        if value is None or value.size == 0:
            continue
        if not (value > 0).all() or value.ndim != 1 or (count is not None and value.size != count):
            return False
    return True


def _tile(given: _Operands) -> bool:
    """Repeats are a vector with one number for each axis, none of them negative."""
    shape, repeats, value = given.shape(0), given.shape(1), given.value(1)
    if repeats is not None and (len(repeats) != 1 or (shape is not None and repeats[0] != len(shape))):
        return False
    return value is None or bool((value >= 0).all())


def _channel_vectors(given: _Operands) -> bool:
    """All inputs but the first are vectors with one number for each channel."""
    shape = given.shape(0)
    vectors = [vector for place in range(1, 5) if (vector := given.shape(place)) is not None]
    if shape is None:
        return all(len(vector) == 1 for vector in vectors)
    return len(shape) >= 2 and all(vector == (shape[1],) for vector in vectors)


def _instance_normalization(given: _Operands) -> bool:
    """As for channels, and there is at least one axis to normalize over."""
    shape = given.shape(0)
    return (shape is None or len(shape) >= 3) and _channel_vectors(given)


def _non_max_suppression(given: _Operands) -> bool:
    """Boxes are [batches, boxes, 4], scores [batches, classes, boxes]."""
    boxes, scores = given.shape(0), given.shape(1)
    if boxes is None or scores is None:
        return True
    if len(boxes) != 3 or len(scores) != 3 or boxes[2] != 4:
        return False
    return boxes[0] == scores[0] and boxes[1] == scores[2]


def _stft(given: _Operands) -> bool:
    """There is at least one frame: no frame is longer than the signal, and frames advance."""
    signal, step, window, length = given.shape(0), given.value(1), given.shape(2), given.value(3)
    if step is not None and not (step > 0).all():
        return False
    frame = (
        window[0] if window else int(length.reshape(-1)[0]) if length is not None and length.size else None
    )
    if frame is None or signal is None:
        return True
    return len(signal) == 3 and 0 < frame <= signal[1]


_RULES: dict[str, Callable[[_Operands], bool]] = {
    "BatchNormalization": _channel_vectors,
    "InstanceNormalization": _instance_normalization,
    "NonMaxSuppression": _non_max_suppression,
    "Resize": _resize,
    "STFT": _stft,
    "Split": _split,
    "Tile": _tile,
}
