"""Rewrites of convolutions and pools."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np
from onnx import NodeProto, helper

from fuzzing.equivalence.graphs.editor import Editor, attribute
from fuzzing.equivalence.graphs.rewrite import register_rewrite


def _settings(editor: Editor, node: NodeProto) -> dict[str, Any] | None:
    """Stride, dilation and padding of a node; None if a shape is unknown or the padding is automatic."""
    shape = editor.type(node.input[0]).shape
    if shape is None or len(shape) < 3 or attribute(node, "auto_pad", b"NOTSET") not in (b"NOTSET", b""):
        return None
    if not editor.is_float(node.input[0]) or editor.type(node.input[0]).dtype == "float16":
        return None
    rank = len(shape) - 2
    return {
        "strides": list(attribute(node, "strides") or [1] * rank),
        "dilations": list(attribute(node, "dilations") or [1] * rank),
        "pads": list(attribute(node, "pads") or [0] * (2 * rank)),
    }


@register_rewrite(
    "convolution-groups", "Conv", proof="A grouped convolution is one for each group, concatenated."
)
def convolution_groups(editor: Editor, node: NodeProto) -> list[NodeProto] | None:
    """Splits input, weight and bias along their channels."""
    groups, settings = attribute(node, "group", 1), _settings(editor, node)
    shapes = [editor.type(name).shape for name in node.input]
    if settings is None or groups < 2 or not all(node.input) or None in shapes:
        return None
    axes = (1, 0, 0)
    nodes, parts = [], []
    for name, shape, axis in zip(node.input, shapes, axes, strict=False):
        assert shape is not None
        pieces = [editor.fresh(name) for _ in range(groups)]
        sizes = editor.lengths([shape[axis] // groups] * groups)
        nodes.append(helper.make_node("Split", [name, sizes], pieces, axis=axis))
        parts.append(pieces)
    results = [editor.fresh("part") for _ in range(groups)]
    for place, result in enumerate(results):
        nodes.append(helper.make_node("Conv", [pieces[place] for pieces in parts], [result], **settings))
    return [*nodes, helper.make_node("Concat", results, list(node.output), axis=1)]


@register_rewrite("convolution-unit", "Conv", proof="A further dimension of length 1 adds no tap.")
def convolution_unit(editor: Editor, node: NodeProto) -> list[NodeProto] | None:
    """From one spatial dimension to two, and from two to three."""
    settings, shape = _settings(editor, node), editor.type(node.input[0]).shape
    if settings is None or shape is None or len(shape) > 4:
        return None
    axes, rank = editor.lengths([2]), len(shape) - 2
    wide = [editor.fresh(name) for name in node.input[:2]]
    nodes = [
        helper.make_node("Unsqueeze", [name, axes], [new])
        for name, new in zip(node.input, wide, strict=False)
    ]
    pads = settings["pads"]
    result = editor.fresh("wide")
    wider = {
        "strides": [1, *settings["strides"]],
        "dilations": [1, *settings["dilations"]],
        "pads": [0, *pads[:rank], 0, *pads[rank:]],
        "group": attribute(node, "group", 1),
    }
    nodes.append(helper.make_node("Conv", [*wide, *node.input[2:]], [result], **wider))
    return [*nodes, helper.make_node("Squeeze", [result, axes], list(node.output))]


@register_rewrite(
    "convolution-taps", "Conv", proof="A convolution is the sum over its taps of products of shifted inputs."
)
def convolution_taps(editor: Editor, node: NodeProto) -> list[NodeProto] | None:
    """Pads, slices one input for each tap, and multiplies by the tap's matrix. Up to nine taps, one group."""
    settings = _settings(editor, node)
    shape, kernel, output = (
        editor.type(name).shape for name in (node.input[0], node.input[1], node.output[0])
    )
    if settings is None or shape is None or kernel is None or output is None:
        return None
    if (
        attribute(node, "group", 1) != 1
        or prod(kernel[2:]) > 9
        or len(node.input) > 2
        or 0 in (*shape, *output)
    ):
        return None
    rank, pads = len(shape) - 2, settings["pads"]
    padded = editor.fresh("padded")
    widths = editor.lengths([0, 0, *pads[:rank], 0, 0, *pads[rank:]])
    nodes = [helper.make_node("Pad", [node.input[0], widths], [padded])]
    total = ""
    for tap in product(*map(range, kernel[2:])):
        starts = [at * step for at, step in zip(tap, settings["dilations"], strict=True)]
        ends = [
            start + (length - 1) * stride + 1
            for start, length, stride in zip(starts, output[2:], settings["strides"], strict=True)
        ]
        axes = list(range(2, 2 + rank))
        given = [editor.lengths(values) for values in (starts, ends, axes, settings["strides"])]
        names = [editor.fresh("tap") for _ in range(5)]
        places = [editor.lengths(values) for values in (list(tap), [at + 1 for at in tap], axes)]
        nodes += [
            helper.make_node("Slice", [padded, *given], [names[0]]),
            helper.make_node("Slice", [node.input[1], *places], [names[1]]),
            helper.make_node("Reshape", [names[1], editor.lengths(kernel[:2])], [names[2]]),
            helper.make_node("Reshape", [names[0], editor.lengths([shape[0], shape[1], -1])], [names[3]]),
            helper.make_node("MatMul", [names[2], names[3]], [names[4]]),
        ]
        if total:
            added = editor.fresh("sum")
            nodes.append(helper.make_node("Add", [total, names[4]], [added]))
            total = added
        else:
            total = names[4]
    return [*nodes, helper.make_node("Reshape", [total, editor.lengths(output)], list(node.output))]


@register_rewrite(
    "max-pool-slices", "MaxPool", proof="A maximum pool is the maximum over its shifted inputs."
)
def max_pool_slices(editor: Editor, node: NodeProto) -> list[NodeProto] | None:
    """One slice for each place of the window; without padding, up to nine places."""
    return _pool(editor, node, "Max")


@register_rewrite(
    "average-pool-slices", "AveragePool", proof="An average pool is the mean of its shifted inputs."
)
def average_pool_slices(editor: Editor, node: NodeProto) -> list[NodeProto] | None:
    """As for the maximum, by Sum and a division."""
    return _pool(editor, node, "Sum")


def _pool(editor: Editor, node: NodeProto, combine: str) -> list[NodeProto] | None:
    settings = _settings(editor, node)
    shape, output = editor.type(node.input[0]).shape, editor.type(node.output[0]).shape
    kernel = list(attribute(node, "kernel_shape") or [])
    if settings is None or shape is None or output is None or len(node.output) > 1 or any(settings["pads"]):
        return None
    if prod(kernel) > 9 or attribute(node, "ceil_mode", 0) or 0 in (*shape, *output):
        return None
    nodes, slices = [], []
    for place in product(*map(range, kernel)):
        starts = [at * step for at, step in zip(place, settings["dilations"], strict=True)]
        ends = [
            start + (length - 1) * stride + 1
            for start, length, stride in zip(starts, output[2:], settings["strides"], strict=True)
        ]
        axes = list(range(2, len(shape)))
        given = [editor.lengths(values) for values in (starts, ends, axes, settings["strides"])]
        slices.append(editor.fresh("slice"))
        nodes.append(helper.make_node("Slice", [node.input[0], *given], [slices[-1]]))
    if combine == "Max":
        return [*nodes, helper.make_node("Max", slices, list(node.output))]
    total, count = (
        editor.fresh("total"),
        editor.constant(np.array(prod(kernel), editor.type(node.input[0]).dtype)),
    )
    nodes.append(helper.make_node("Sum", slices, [total]))
    return [*nodes, helper.make_node("Div", [total, count], list(node.output))]
