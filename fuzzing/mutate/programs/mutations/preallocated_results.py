"""A value is written into a tensor that exists before: by out=, copy_, an index, or through a view."""

from __future__ import annotations

import ast

from fuzzing.mutate.programs.mutations import Parameters, register_mutation
from fuzzing.mutate.programs.profile import Point, TensorFacts
from fuzzing.mutate.programs.rewriting import Rewriting

#: Functions of torch whose out= takes a tensor of the result's shape and type.
_WITH_OUT = frozenset(
    {
        "abs",
        "add",
        "atan",
        "ceil",
        "clamp",
        "cos",
        "cosh",
        "div",
        "erf",
        "exp",
        "expm1",
        "floor",
        "fmod",
        "ge",
    }
    | {"gt", "le", "log1p", "lt", "matmul", "maximum", "minimum", "mm", "bmm", "mul", "neg", "pow", "sigmoid"}
    | {"sign", "sin", "sinh", "sqrt", "sub", "tanh", "where", "logical_not", "logical_and", "logical_or"}
)
_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "torch.add",
    ast.Sub: "torch.sub",
    ast.Mult: "torch.mul",
    ast.Div: "torch.div",
}


@register_mutation("preallocated-results")
class PreallocatedResults(Rewriting):
    """Sound: the tensor has the profiled shape and element type, so that writing converts nothing, and no
    other variable. Its strides may differ from the value's, so later sums may add in another order. A value
    that shares memory with an operand is left out: a later write would no longer reach the operand. It holds
    zeros before, since a later step may read it there.
    """

    exact = False
    views = False
    forms = ("out", "copy", "index", "view", "zeros")

    def fits(self, value: str, operands: Point, result: TensorFacts) -> bool:
        """No two elements of the result share memory."""
        del value, operands
        return not result.overlapping

    def text(self, number: int, value: str, parameters: Parameters) -> str:
        """The tensor, and the write."""
        del number
        target, form = parameters["target"], parameters["form"]
        shape, device = tuple(parameters["shape"]), parameters["operands"][0]
        empty = (
            f"{target} = torch.empty({shape}, dtype={parameters['dtype']}, device={device}.device).zero_()\n"
        )
        # Few values have a function that takes out=, so form "copy" is for those that have none.
        call = _call_with_out(value, target) if form in ("out", "copy") else ""
        if call:
            return f"{empty}{call}"
        if form == "index":
            return f"{empty}{target}[...] = {value}"
        if form == "view":
            return f"{empty}{target}.view(-1)[:] = ({value}).reshape(-1)"
        if form == "zeros":
            return f"{empty}{target} |= {value}" if _is_bool(parameters) else _added(empty, target, value)
        return f"{empty}{target}.copy_({value})"


def _call_with_out(value: str, target: str) -> str:
    """The call that computes the value into the target; "" if the value is none of a known function."""
    node = ast.parse(value, mode="eval").body
    if isinstance(node, ast.BinOp) and isinstance(node.left, (ast.Name, ast.Call)):
        function = _OPERATORS.get(type(node.op), "")
        given: list[ast.AST] = [node.left, node.right]
    elif isinstance(node, ast.Call) and ast.unparse(node.func).removeprefix("torch.") in _WITH_OUT:
        function, given = ast.unparse(node.func), list(ast.iter_child_nodes(node))[1:]
    else:
        return ""
    return f"{function}({', '.join(map(ast.unparse, given))}, out={target})" if function else ""


def _is_bool(parameters: Parameters) -> bool:
    return bool(parameters["dtype"] == "torch.bool")


def _added(empty: str, target: str, value: str) -> str:
    """By addition to negative zeros, which changes no number; 0.0 would make -0.0 positive."""
    return f"{empty}{target}.neg_()\n{target} += {value}"
