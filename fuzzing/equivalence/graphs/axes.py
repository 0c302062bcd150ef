"""Rewrites of how a node counts its axes."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, helper

from fuzzing.equivalence.graphs.detours import register_detour
from fuzzing.equivalence.graphs.editor import Editor, ValueType, attribute
from fuzzing.equivalence.graphs.rewrite import register_rewrite

#: The default of the attribute `axis`; Concat has none.
_DEFAULTS = {
    "ArgMax": 0, "ArgMin": 0, "Concat": 0, "Flatten": 1, "Gather": 0, "GatherElements": 0, "Hardmax": -1,
    "LayerNormalization": -1, "LogSoftmax": -1, "ScatterElements": 0, "Softmax": -1, "Split": 0, "TopK": -1,
}  # fmt: skip
#: The input that holds the axes.
_INPUTS = {
    "CumSum": 1, "Pad": 3, "ReduceMax": 1, "ReduceMean": 1, "ReduceMin": 1, "ReduceProd": 1, "ReduceSum": 1,
    "Slice": 3, "Squeeze": 1, "Unsqueeze": 1,
}  # fmt: skip
#: The opset from which all of them allow negative axes.
_NEGATIVE_AXES = 13


@register_rewrite("axis-sign", *_DEFAULTS, *_INPUTS, proof="Of n axes, axis k is also axis k-n.")
def axis_sign(editor: Editor, node: NodeProto) -> list[NodeProto] | None:
    """The same axes, from the last backwards or from the first on."""
    # Unsqueeze counts the axes of its output.
    shape = editor.type(node.output[0] if node.op_type == "Unsqueeze" else node.input[0]).shape
    if not shape or editor.opset < _NEGATIVE_AXES:
        return None
    changed = NodeProto()
    changed.CopyFrom(node)
    if node.op_type in _DEFAULTS:
        axis = attribute(node, "axis", _DEFAULTS[node.op_type])
        if axis == len(shape):  # Flatten's end has no negative form
            return None
        kept = [item for item in node.attribute if item.name != "axis"]
        del changed.attribute[:]
        changed.attribute.extend([*kept, helper.make_attribute("axis", _other_sign(axis, len(shape)))])
        return [changed]
    place = _INPUTS[node.op_type]
    axes = editor.initializer(node.input[place]) if place < len(node.input) else None
    if axes is None:
        return None
    flipped = [_other_sign(int(axis), len(shape)) for axis in axes.flatten()]
    changed.input[place] = editor.constant(np.array(flipped, axes.dtype).reshape(axes.shape), "axes")
    return [changed]


def _other_sign(axis: int, rank: int) -> int:
    return axis + rank if axis < 0 else axis - rank


@register_detour("unit-axes", "Squeeze removes the two last axes, of length 1, that Unsqueeze adds.")
def unit_axes(editor: Editor, x: str, y: str, kind: ValueType) -> list[NodeProto] | None:
    """Added as the axes n and n+1, removed as -2 and -1."""
    if kind.shape is None:
        return None
    middle, rank = editor.fresh(y), len(kind.shape)
    return [
        helper.make_node("Unsqueeze", [x, editor.lengths([rank, rank + 1])], [middle]),
        helper.make_node("Squeeze", [middle, editor.lengths([-2, -1])], [y]),
    ]
