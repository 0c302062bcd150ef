"""Rewrites of a node and the node before it: associativity, distributivity, and exchanged order."""

from __future__ import annotations

from typing import Any

from onnx import NodeProto, helper

from fuzzing.equivalence.graphs.editor import Editor, attribute
from fuzzing.equivalence.graphs.rewrite import register_rewrite

#: Operators on each element, which a permutation of elements does not disturb.
_POINTWISE = (
    "Relu", "Sigmoid", "Tanh", "Exp", "Neg", "Abs", "Sqrt", "Floor", "Ceil", "Round", "Sign", "Erf", "Not",
    "Cast", "LeakyRelu", "Elu", "Selu", "Softplus", "Softsign", "HardSigmoid", "Sin", "Cos", "Reciprocal",
    "Identity",
)  # fmt: skip


def _before(editor: Editor, name: str, operator: str) -> NodeProto | None:
    """The node of a type that computes a value."""
    found = next((node for node in editor.nodes if name in node.output), None)
    return found if found is not None and (found.op_type, found.domain) == (operator, "") else None


def _computes(editor: Editor, node: NodeProto) -> bool:
    return all(editor.type(name).dtype in ("float32", "float64") for name in node.input)


@register_rewrite("add-associated", "Add", proof="(a+b)+c = a+(b+c).")
def add_associated(editor: Editor, node: NodeProto) -> list[NodeProto] | None:
    """Where the first addend is a sum."""
    inner = _before(editor, node.input[0], "Add")
    if inner is None or not _computes(editor, node):
        return None
    middle = editor.fresh("sum")
    return [
        helper.make_node("Add", [inner.input[1], node.input[1]], [middle]),
        helper.make_node("Add", [inner.input[0], middle], list(node.output)),
    ]


@register_rewrite("multiply-distributed", "Mul", proof="(a+b)·c = a·c + b·c.")
def multiply_distributed(editor: Editor, node: NodeProto) -> list[NodeProto] | None:
    """Where the first factor is a sum."""
    inner = _before(editor, node.input[0], "Add")
    if inner is None or not _computes(editor, node):
        return None
    products = [editor.fresh("product"), editor.fresh("product")]
    multiplied = [
        helper.make_node("Mul", [term, node.input[1]], [name])
        for term, name in zip(inner.input, products, strict=True)
    ]
    return [*multiplied, helper.make_node("Add", products, list(node.output))]


@register_rewrite(
    "transpose-exchanged", "Transpose", proof="An operator on each element commutes with a permutation."
)
def transpose_exchanged(editor: Editor, node: NodeProto) -> list[NodeProto] | None:
    """The operator before a Transpose, after it."""
    return _exchanged(editor, node)


@register_rewrite("reshape-exchanged", "Reshape", proof="An operator on each element commutes with Reshape.")
def reshape_exchanged(editor: Editor, node: NodeProto) -> list[NodeProto] | None:
    """The operator before a Reshape, after it."""
    return _exchanged(editor, node)


def _exchanged(editor: Editor, node: NodeProto) -> list[NodeProto] | None:
    inner = next((found for name in _POINTWISE if (found := _before(editor, node.input[0], name))), None)
    if inner is None or len(inner.input) != 1:
        return None
    moved, last = NodeProto(), NodeProto()
    moved.CopyFrom(node)
    last.CopyFrom(inner)
    middle = editor.fresh("moved")
    moved.input[0], moved.output[0] = inner.input[0], middle
    last.input[0], last.output[0] = middle, node.output[0]
    return [moved, last]


@register_rewrite("matmul-split", "MatMul", proof="AB = A₁B₁ + A₂B₂ for a partition of the inner dimension.")
def matmul_split(editor: Editor, node: NodeProto) -> list[NodeProto] | None:
    """The inner dimension cut after its first element."""
    shapes = [editor.type(name).shape for name in node.input]
    if not _computes(editor, node) or any(shape is None or len(shape) != 2 for shape in shapes):
        return None
    inner = (shapes[0] or ())[1]
    if inner < 2:
        return None
    sizes = editor.lengths([1, inner - 1])
    left, right = ([editor.fresh("part"), editor.fresh("part")] for _ in range(2))
    products = [editor.fresh("product"), editor.fresh("product")]
    return [
        helper.make_node("Split", [node.input[0], sizes], left, axis=1),
        helper.make_node("Split", [node.input[1], sizes], right, axis=0),
        *(helper.make_node("MatMul", [left[at], right[at]], [products[at]]) for at in range(2)),
        helper.make_node("Add", products, list(node.output)),
    ]


@register_rewrite("gemm-parts", "Gemm", proof="Gemm is alpha·A'B' + beta·C.")
def gemm_parts(editor: Editor, node: NodeProto) -> list[NodeProto] | None:
    """A product, scaled, and a sum."""
    if not _computes(editor, node):
        return None
    nodes: list[NodeProto] = []

    def add(operator: str, inputs: list[str], **attributes: Any) -> str:
        name = editor.fresh("gemm")
        nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    factors = [
        add("Transpose", [name], perm=[1, 0]) if attribute(node, flag, 0) else name
        for name, flag in zip(node.input[:2], ("transA", "transB"), strict=True)
    ]
    result = add("MatMul", factors)
    result = add("Mul", [result, editor.scalar(attribute(node, "alpha", 1.0), node.input[0])])
    if len(node.input) > 2 and node.input[2]:
        scaled = add("Mul", [node.input[2], editor.scalar(attribute(node, "beta", 1.0), node.input[0])])
        result = add("Add", [result, scaled])
    return [*nodes, helper.make_node("Identity", [result], list(node.output))]
