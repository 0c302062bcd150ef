"""Rewrites that put a node into control flow or a function, beside branches that never run."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper

from fuzzing.equivalence.graphs.editor import DOMAIN, Editor
from fuzzing.equivalence.graphs.rewrite import register_rewrite


def _outputs(editor: Editor, node: NodeProto) -> list[onnx.ValueInfoProto] | None:
    """The node's outputs under new names; None if a type is unknown or an output is omitted."""
    found = []
    for name in node.output:
        kind = editor.type(name)
        if not name or not kind.dtype or kind.dtype == "object" or kind.shape is None:
            return None
        number = helper.np_dtype_to_tensor_dtype(np.dtype(kind.dtype))
        found.append(helper.make_tensor_value_info(editor.fresh(name), number, kind.shape))
    return found


def _has_body(node: NodeProto) -> bool:
    return any(item.HasField("g") for item in node.attribute)


def _inside(node: NodeProto, outputs: list[onnx.ValueInfoProto]) -> NodeProto:
    copied = NodeProto()
    copied.CopyFrom(node)
    del copied.output[:]
    copied.output.extend(value.name for value in outputs)
    return copied


@register_rewrite("if-true", proof="If runs the branch that its condition selects; the other one is dead.")
def if_true(editor: Editor, node: NodeProto) -> list[NodeProto] | None:
    """The node in the then-branch; zeros of its types in the other."""
    outputs, others = _outputs(editor, node), _outputs(editor, node)
    if outputs is None or others is None or _has_body(node):
        return None
    dead = [
        helper.make_node("Constant", [], [value.name], value=onnx.numpy_helper.from_array(np.zeros(
            [dim.dim_value for dim in value.type.tensor_type.shape.dim],
            helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type),
        )))
        for value in others
    ]  # fmt: skip
    live = helper.make_graph([_inside(node, outputs)], "then", [], outputs)
    condition = editor.constant(np.array(True))
    branches = {"then_branch": live, "else_branch": helper.make_graph(dead, "else", [], others)}
    return [helper.make_node("If", [condition], list(node.output), **branches)]


@register_rewrite(
    "loop-once", proof="A Loop of one trip runs its body once; a scanned output gets a first dimension."
)
def loop_once(editor: Editor, node: NodeProto) -> list[NodeProto] | None:
    """The node in the body, its outputs scanned, and the first dimension squeezed."""
    outputs = _outputs(editor, node)
    if outputs is None or _has_body(node):
        return None
    trip, true = editor.constant(np.array(1, np.int64)), editor.constant(np.array(True))
    iteration, before, after = (editor.fresh("loop") for _ in range(3))
    body = helper.make_graph(
        [_inside(node, outputs), helper.make_node("Identity", [before], [after])], "body",
        [
            helper.make_tensor_value_info(iteration, TensorProto.INT64, []),
            helper.make_tensor_value_info(before, TensorProto.BOOL, []),
        ],
        [helper.make_tensor_value_info(after, TensorProto.BOOL, []), *outputs],
    )  # fmt: skip
    scanned = [editor.fresh(name) for name in node.output]
    axes = editor.lengths([0])
    squeezed = [
        helper.make_node("Squeeze", [item, axes], [name])
        for item, name in zip(scanned, node.output, strict=True)
    ]
    return [helper.make_node("Loop", [trip, true], scanned, body=body), *squeezed]


@register_rewrite(
    "outline", proof="A function's call is its body with the inputs in place of the parameters."
)
def outline(editor: Editor, node: NodeProto) -> list[NodeProto] | None:
    """A function of the model whose body is the node."""
    if _has_body(node) or not node.input or not all((*node.input, *node.output)):
        return None
    inputs = list(dict.fromkeys(node.input))
    name = editor.fresh(f"outlined_{node.op_type}")
    opsets = [item for item in editor.model.opset_import if item.domain in ("", "ai.onnx")]
    copied = NodeProto()
    copied.CopyFrom(node)
    editor.add_function(helper.make_function(DOMAIN, name, inputs, list(node.output), [copied], opsets))
    return [helper.make_node(name, inputs, list(node.output), domain=DOMAIN)]


#: Operators whose function breaks ONNX's own rules: AffineGrid's gives Range tensors of one dimension, which
#: takes scalars.
_INVALID_BODIES = frozenset({"AffineGrid"})


@register_rewrite("function-body", proof="ONNX defines the operator by this function.")
def function_body(editor: Editor, node: NodeProto) -> list[NodeProto] | None:
    """The body that ONNX's own definition gives for the operator, as a function of the model."""
    if node.op_type in _INVALID_BODIES:
        return None
    try:
        schema = onnx.defs.get_schema(node.op_type, editor.opset, "")
    except onnx.defs.SchemaError:
        return None
    if not getattr(schema, "has_function", False) or not node.input or not all((*node.input, *node.output)):
        return None
    body = onnx.FunctionProto()
    body.CopyFrom(schema.function_body)
    if len(node.input) != len(body.input) or len(node.output) != len(body.output):
        return None
    needed = next((item.version for item in body.opset_import if item.domain == ""), 0)
    if needed > editor.opset:
        return None
    body.domain, body.name = DOMAIN, editor.fresh(f"body_{node.op_type}")
    editor.add_function(body)
    call = helper.make_node(body.name, list(node.input), list(node.output), domain=DOMAIN)
    # A function's attributes have no defaults here, as they have in a schema.
    given = {item.name: item for item in node.attribute}
    for name in body.attribute:
        if name not in given:
            default = schema.attributes[name].default_value
            if not default.name:
                return None
            given[name] = default
    call.attribute.extend(given[name] for name in sorted(given))
    return [call]


@register_rewrite("constant-node", proof="A Constant node gives what the initializer holds.")
def constant_node(editor: Editor, node: NodeProto) -> list[NodeProto] | None:
    """The node's initializers as Constant nodes."""
    copied, before = NodeProto(), []
    copied.CopyFrom(node)
    for place, name in enumerate(node.input):
        value = editor.initializer(name)
        if value is None or value.dtype == object:
            continue
        made = editor.fresh("node")
        before.append(helper.make_node("Constant", [], [made], value=onnx.numpy_helper.from_array(value)))
        copied.input[place] = made
    return [*before, copied] if before else None
