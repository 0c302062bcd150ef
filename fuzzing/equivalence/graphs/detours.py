"""Rewrites that lead a node's result through operators which, together, change nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import NodeProto, helper

from fuzzing.equivalence.graphs.editor import Editor, ValueType
from fuzzing.equivalence.graphs.rewrite import register_rewrite

#: Nodes from a value to a value of another name that is equal to it; None if its type does not allow them.
Detour = Callable[[Editor, str, str, ValueType], "list[NodeProto] | None"]


def register_detour(name: str, proof: str) -> Callable[[Detour], Detour]:
    """Decorator: registers the detour of a node's first output as a rewrite."""

    def register(detour: Detour) -> Detour:
        def apply(editor: Editor, node: NodeProto) -> list[NodeProto] | None:
            output = node.output[0] if node.output else ""
            kind = editor.type(output)
            if not output or not kind.dtype or kind.dtype == "object":
                return None
            before = editor.fresh(output)
            chain = detour(editor, before, output, kind)
            if chain is None:
                return None
            changed = NodeProto()
            changed.CopyFrom(node)
            changed.output[0] = before
            return [changed, *chain]

        register_rewrite(name, proof=proof)(apply)
        return detour

    return register


def _node(operator: str, inputs: list[str], outputs: list[str], **attributes: Any) -> NodeProto:
    return helper.make_node(operator, inputs, outputs, **attributes)


@register_detour("identity", "Identity returns its input.")
def identity(editor: Editor, x: str, y: str, kind: ValueType) -> list[NodeProto] | None:
    """Y = Identity(x)"""
    del editor, kind
    return [_node("Identity", [x], [y])]


@register_detour("transpose-twice", "A permutation and its inverse compose to the identity.")
def transpose_twice(editor: Editor, x: str, y: str, kind: ValueType) -> list[NodeProto] | None:
    """Reverses the dimensions, and reverses them back."""
    if kind.shape is None or len(kind.shape) < 2:
        return None
    order = [*range(1, len(kind.shape)), 0]
    middle = editor.fresh(y)
    back = [order.index(place) for place in range(len(order))]
    return [_node("Transpose", [x], [middle], perm=order), _node("Transpose", [middle], [y], perm=back)]


@register_detour(
    "reshape-twice", "Reshape keeps the elements in order, so the first shape restores the value."
)
def reshape_twice(editor: Editor, x: str, y: str, kind: ValueType) -> list[NodeProto] | None:
    """Flat, and as it was."""
    if kind.shape is None or 0 in kind.shape:
        return None
    middle = editor.fresh(y)
    flat, shape = editor.lengths([-1]), editor.lengths(kind.shape)
    return [_node("Reshape", [x, flat], [middle]), _node("Reshape", [middle, shape], [y])]


@register_detour("unsqueeze-squeeze", "Squeeze removes the dimension of length 1 that Unsqueeze adds.")
def unsqueeze_squeeze(editor: Editor, x: str, y: str, kind: ValueType) -> list[NodeProto] | None:
    """A first dimension of length 1."""
    del kind
    middle, axes = editor.fresh(y), editor.lengths([0])
    return [_node("Unsqueeze", [x, axes], [middle]), _node("Squeeze", [middle, axes], [y])]


@register_detour("split-concat", "Concatenating the parts of a partition in order gives the whole.")
def split_concat(editor: Editor, x: str, y: str, kind: ValueType) -> list[NodeProto] | None:
    """One element of the last dimension, and the others."""
    if not kind.shape or kind.shape[-1] < 2:
        return None
    parts = [editor.fresh(y), editor.fresh(y)]
    sizes = editor.lengths([1, kind.shape[-1] - 1])
    axis = len(kind.shape) - 1
    return [_node("Split", [x, sizes], parts, axis=axis), _node("Concat", parts, [y], axis=axis)]


@register_detour("pad-slice", "Slicing away what was padded leaves the value.")
def pad_slice(editor: Editor, x: str, y: str, kind: ValueType) -> list[NodeProto] | None:
    """One zero before the first dimension, two after it."""
    if not kind.shape or kind.dtype == "bool":
        return None
    rank, length, middle = len(kind.shape), kind.shape[0], editor.fresh(y)
    pads = [0] * (2 * rank)
    pads[0], pads[rank] = 1, 2
    ends = [editor.lengths([value]) for value in (1, 1 + length, 0)]
    return [_node("Pad", [x, editor.lengths(pads)], [middle]), _node("Slice", [middle, *ends], [y])]


@register_detour("reverse-twice", "Reversing a dimension is its own inverse.")
def reverse_twice(editor: Editor, x: str, y: str, kind: ValueType) -> list[NodeProto] | None:
    """Slices of step -1 in the last dimension."""
    if not kind.shape:
        return None
    middle = editor.fresh(y)
    given = [editor.lengths([value]) for value in (-1, np.iinfo(np.int64).min + 1, len(kind.shape) - 1, -1)]
    return [_node("Slice", [x, *given], [middle]), _node("Slice", [middle, *given], [y])]


@register_detour("negate-twice", "Negation changes the sign bit alone, twice.")
def negate_twice(editor: Editor, x: str, y: str, kind: ValueType) -> list[NodeProto] | None:
    """Y = -(-x)"""
    if kind.dtype not in ("float16", "float32", "float64"):
        return None
    middle = editor.fresh(y)
    return [_node("Neg", [x], [middle]), _node("Neg", [middle], [y])]


@register_detour("cast-wider", "float64 holds every float32 and float16 exactly, int64 every int32.")
def cast_wider(editor: Editor, x: str, y: str, kind: ValueType) -> list[NodeProto] | None:
    """To the wider type and back."""
    wider = {"float16": "float32", "float32": "float64", "int32": "int64", "int8": "int32", "uint8": "int32"}
    if kind.dtype not in wider:
        return None
    numbers = [helper.np_dtype_to_tensor_dtype(np.dtype(name)) for name in (wider[kind.dtype], kind.dtype)]
    middle = editor.fresh(y)
    return [_node("Cast", [x], [middle], to=numbers[0]), _node("Cast", [middle], [y], to=numbers[1])]


@register_detour("gather-all", "Gathering 0 … n-1 takes every element once and in order.")
def gather_all(editor: Editor, x: str, y: str, kind: ValueType) -> list[NodeProto] | None:
    """All of the first dimension."""
    if not kind.shape:
        return None
    return [_node("Gather", [x, editor.lengths(range(kind.shape[0]))], [y], axis=0)]


@register_detour("where-same", "Where takes each element from one of two equal tensors.")
def where_same(editor: Editor, x: str, y: str, kind: ValueType) -> list[NodeProto] | None:
    """Every second element from either."""
    if kind.shape is None:
        return None
    condition = editor.constant(np.arange(np.prod(kind.shape, dtype=int)).reshape(kind.shape) % 2 == 0)
    return [_node("Where", [condition, x, x], [y])]


@register_detour("multiply-one", "x·1 = x in every format, with NaN and infinities.")
def multiply_one(editor: Editor, x: str, y: str, kind: ValueType) -> list[NodeProto] | None:
    """Y = 1·x"""
    if kind.dtype not in ("float32", "float64", "int32", "int64"):
        return None
    return [_node("Mul", [editor.constant(np.array(1, kind.dtype)), x], [y])]


@register_detour("expand-same", "Expanding to its own shape leaves a value.")
def expand_same(editor: Editor, x: str, y: str, kind: ValueType) -> list[NodeProto] | None:
    """The shape as a constant."""
    return None if kind.shape is None else [_node("Expand", [x, editor.lengths(kind.shape)], [y])]


@register_detour("expand-shape", "Expanding to its own shape, computed, leaves a value.")
def expand_shape(editor: Editor, x: str, y: str, kind: ValueType) -> list[NodeProto] | None:
    """The shape by Shape."""
    del kind
    shape = editor.fresh(y)
    return [_node("Shape", [x], [shape]), _node("Expand", [x, shape], [y])]


@register_detour(
    "expand-checked", "A shape equals itself, so that it is chosen and expanding to it leaves a value."
)
def expand_checked(editor: Editor, x: str, y: str, kind: ValueType) -> list[NodeProto] | None:
    """The shape by Where and Equal, as torch's exporter writes that of an `expand`."""
    if not kind.shape:
        return None
    shape, known, same, chosen = (editor.fresh(y) for _ in range(4))
    wrong = editor.lengths([length + 1 for length in kind.shape])
    return [
        _node("Shape", [x], [shape]),
        _node("Identity", [editor.lengths(kind.shape)], [known]),
        _node("Equal", [shape, known], [same]),
        _node("Where", [same, shape, wrong], [chosen]),
        _node("Expand", [x, chosen], [y]),
    ]


@register_detour("tile-once", "Repeating once leaves a value.")
def tile_once(editor: Editor, x: str, y: str, kind: ValueType) -> list[NodeProto] | None:
    """Once in each dimension."""
    return None if not kind.shape else [_node("Tile", [x, editor.lengths([1] * len(kind.shape))], [y])]


@register_detour("maximum-itself", "max(x, x) = x; NaN stays NaN.")
def maximum_itself(editor: Editor, x: str, y: str, kind: ValueType) -> list[NodeProto] | None:
    """Y = Max(x, x)"""
    del editor
    return [_node("Max", [x, x], [y])] if kind.dtype in ("float32", "float64", "int32", "int64") else None


@register_detour("concat-halves", "Both halves by Slice, concatenated, are the whole.")
def concat_halves(editor: Editor, x: str, y: str, kind: ValueType) -> list[NodeProto] | None:
    """The first dimension cut in the middle."""
    if not kind.shape or kind.shape[0] < 2:
        return None
    half, length = kind.shape[0] // 2, kind.shape[0]
    parts, nodes = [editor.fresh(y), editor.fresh(y)], []
    for part, ends in zip(parts, ((0, half), (half, length)), strict=True):
        nodes.append(_node("Slice", [x, *(editor.lengths([end]) for end in (*ends, 0))], [part]))
    return [*nodes, _node("Concat", parts, [y], axis=0)]


@register_detour("space-depth", "DepthToSpace is the inverse of SpaceToDepth for one block size.")
def space_depth(editor: Editor, x: str, y: str, kind: ValueType) -> list[NodeProto] | None:
    """Blocks of 2 × 2."""
    if kind.shape is None or len(kind.shape) != 4 or kind.shape[2] % 2 or kind.shape[3] % 2:
        return None
    if 0 in kind.shape or kind.dtype not in ("float32", "float64"):
        return None
    middle = editor.fresh(y)
    return [
        _node("SpaceToDepth", [x], [middle], blocksize=2),
        _node("DepthToSpace", [middle], [y], blocksize=2),
    ]
