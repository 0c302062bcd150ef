"""Rewrites between inputs and constants."""

from __future__ import annotations

from onnx import NodeProto, helper

from fuzzing.equivalence.graphs.editor import Editor
from fuzzing.equivalence.graphs.rewrite import register_rewrite


@register_rewrite("input-constant", proof="The case gives the input this value in every run.")
def input_constant(editor: Editor, node: NodeProto) -> list[NodeProto] | None:
    """The node's first input that the case gives, as an initializer; the model keeps the input."""
    place = next((at for at, name in enumerate(node.input) if name in editor.given), None)
    if place is None:
        return None
    return [_with_input(node, place, editor.constant(editor.given[node.input[place]], "given"))]


@register_rewrite("constant-input", proof="An input that is not given has the value of its initializer.")
def constant_input(editor: Editor, node: NodeProto) -> list[NodeProto] | None:
    """The node's first initializer, as the default of an optional input."""
    place = next((at for at, name in enumerate(node.input) if editor.initializer(name) is not None), None)
    # Before version 4 of the format every initializer is an input, and none may be replaced.
    if place is None or editor.model.ir_version < 4:
        return None
    array = editor.initializer(node.input[place])
    name = editor.constant(array, "default")
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    editor.model.graph.input.append(helper.make_tensor_value_info(name, kind, array.shape))
    return [_with_input(node, place, name)]


def _with_input(node: NodeProto, place: int, name: str) -> NodeProto:
    changed = NodeProto()
    changed.CopyFrom(node)
    changed.input[place] = name
    return changed
