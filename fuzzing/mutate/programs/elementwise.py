"""Element-wise expressions: an element of the result depends on the operands' elements at its position."""

from __future__ import annotations

import ast

_TORCH = frozenset(
    {"abs", "neg", "relu", "sin", "cos", "sinh", "cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh"}
    | {"exp", "log", "sqrt", "tanh", "sigmoid", "erf", "square", "reciprocal", "add", "sub", "mul", "div"}
    | {"maximum", "minimum", "pow", "where", "clamp", "ceil", "floor", "sign", "logical_not", "logical_and"}
    | {"logical_or", "logical_xor", "eq", "lt", "gt", "le", "ge", "fmod", "remainder"}
)
_FUNCTIONAL = frozenset(
    {"elu", "celu", "selu", "softplus", "softsign", "leaky_relu", "hardswish", "mish", "gelu", "silu"}
)


def elementwise_operands(value: str) -> frozenset[str] | None:
    """The variables of an element-wise expression; None for any other, and for one without variables."""
    expression = ast.parse(value, mode="eval").body
    if not isinstance(expression, (ast.Call, ast.BinOp, ast.UnaryOp)) or not _is_elementwise(expression):
        return None
    names = {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)} - {"torch"}
    return frozenset(names) or None


def _is_elementwise(node: ast.expr) -> bool:
    if isinstance(node, (ast.Name, ast.Constant)):
        return True
    if isinstance(node, ast.UnaryOp):
        return not isinstance(node.op, ast.Not) and _is_elementwise(node.operand)
    if isinstance(node, ast.BinOp):
        return not isinstance(node.op, ast.MatMult) and all(map(_is_elementwise, (node.left, node.right)))
    if not isinstance(node, ast.Call):
        return False
    function = ast.unparse(node.func)
    prefix, _, name = function.rpartition(".")
    known = (prefix == "torch" and name in _TORCH) or (
        prefix == "torch.nn.functional" and name in _FUNCTIONAL
    )
    plain = all(isinstance(item.value, (ast.Constant, ast.UnaryOp)) for item in node.keywords)
    return known and plain and all(map(_is_elementwise, node.args))
