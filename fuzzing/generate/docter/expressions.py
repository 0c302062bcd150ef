"""Expressions over parameters, in which constraints refer to other parameters.

A subset of Python: numbers, names, `a[0]`, + - * / // %, comparisons, `and`, `or`, `not`, `x if c else y`,
and the functions of FUNCTIONS. A name is a parameter, or a symbol bound once for each call. Division is
exact (a fraction): `in_channels / groups` is a length only where it is whole.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import cache
from typing import Any

from fuzzing.errors import UsageError


class UnboundError(Exception):
    """The expression uses a name without a value; the text is its name."""


class ExpressionError(UsageError):
    """A text is not an expression, or cannot be computed with these values."""


def _shape(value: Any) -> tuple[int, ...]:
    """Of a tensor; of the first one in a list of tensors; of a number it is ()."""
    if isinstance(value, (list, tuple)) and value:
        value = value[0]
    if isinstance(value, (bool, int, float, complex)):
        return ()
    shape = getattr(value, "shape", None)
    if shape is None:
        raise ExpressionError(f"{type(value).__name__} has no shape")
    return tuple(shape)


def _length(value: Any) -> int:
    """Of a list; 1 for a number, which stands for a list of one."""
    return len(value) if isinstance(value, (list, tuple)) else 1


def _size(value: Any, dim: Any) -> int:
    shape = _shape(value)
    if not shape:
        return 1  # torch takes a tensor of rank 0 for one of one element
    if not -len(shape) <= dim < len(shape):
        raise ExpressionError(f"there is no dimension {dim} in {shape}")
    return shape[int(dim)]


def _is_integer(value: Any) -> bool:
    """Of a tensor's elements, or of a number; bool counts as an integer."""
    dtype = getattr(value, "dtype", None)
    return isinstance(value, int) if dtype is None else dtype.startswith(("int", "uint", "bool"))


#: What can be asked of a parameter. `ndim(x)`, `size(x, d)`, `numel(x)` of a tensor (or the first of a list);
#: `length(x)` of a list; `is_integer(x)` of a tensor or number; the rest as in Python. `given(x)`, beside
#: these, is whether a call gives x at all.
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "ndim": lambda value: len(_shape(value)),
    "size": _size,
    "numel": lambda value: math.prod(_shape(value)),
    "least_size": lambda value: min(_shape(value), default=1),
    "length": _length,
    "is_integer": _is_integer,
    "prod": lambda value: math.prod(value) if isinstance(value, (list, tuple)) else value,
    "floor": math.floor,
    "ceil": math.ceil,
    "min": min,
    "max": max,
    "abs": abs,
}
_BINARY: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_COMPARE: Mapping[type, Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}


@cache
def parse(text: str) -> ast.expr:
    """The expression as a tree; raises ExpressionError."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise ExpressionError(f"{text!r} is no expression: {error}") from None
    for node in ast.walk(tree):
        if not isinstance(node, _NODES):
            raise ExpressionError(f"{text!r} has {type(node).__name__}, which no constraint needs")
    return tree


_NODES = (
    ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.IfExp, ast.Call,
    ast.Subscript, ast.operator, ast.unaryop, ast.cmpop, ast.boolop, ast.expr_context,
)  # fmt: skip


def is_expression(text: str) -> bool:
    """Whether `parse` accepts it."""
    try:
        parse(text)
    except ExpressionError:
        return False
    return True


@cache
def names_in(text: str) -> frozenset[str]:
    """The parameters and symbols in an expression."""
    return frozenset(_names(parse(text)))


def _names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Call):
        for argument in node.args:
            yield from _names(argument)
    else:
        for child in ast.iter_child_nodes(node):
            yield from _names(child)


def evaluate(text: str, scope: Mapping[str, Any]) -> Any:
    """The value of an expression. A whole fraction is an int.

    Raises UnboundError for a name that is not in `scope`, ExpressionError where it cannot be computed
    (a division by zero, a missing dimension, arithmetic on None).
    """
    try:
        return _to_int(_evaluate(parse(text), scope))
    except (ZeroDivisionError, TypeError, IndexError, OverflowError, ValueError) as error:
        raise ExpressionError(f"{text}: {error}") from None


def _to_int(value: Any) -> Any:
    return int(value) if isinstance(value, Fraction) and value.denominator == 1 else value


def _evaluate(node: ast.expr, scope: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant():
            return node.value
        case ast.Name():
            if node.id not in scope:
                raise UnboundError(node.id)
            return scope[node.id]
        case ast.BinOp():
            return _binary(node.op, _evaluate(node.left, scope), _evaluate(node.right, scope))
        case ast.UnaryOp():
            value = _evaluate(node.operand, scope)
            return not value if isinstance(node.op, ast.Not) else -value
        case ast.Compare():
            return _compare(node, scope)
        case ast.BoolOp():
            wanted = isinstance(node.op, ast.Or)
            return next(
                (wanted for item in node.values if bool(_evaluate(item, scope)) is wanted), not wanted
            )
        case ast.IfExp():
            return _evaluate(node.body if _evaluate(node.test, scope) else node.orelse, scope)
        case ast.Call(func=ast.Name(id="given"), args=[ast.Name(id=name)]):
            return name in getattr(scope, "explicit", scope)
        case ast.Call(func=ast.Name(id=name)) if name in FUNCTIONS:
            return FUNCTIONS[name](*(_to_int(_evaluate(item, scope)) for item in node.args))
        case ast.Subscript():
            return _item(_evaluate(node.value, scope), _evaluate(node.slice, scope))
    raise ExpressionError(f"{ast.unparse(node)} is no expression of constraints")


def _binary(op: ast.operator, left: Any, right: Any) -> Any:
    if isinstance(op, ast.Div):
        return Fraction(left) / Fraction(right)
    return _BINARY[type(op)](left, right)


def _compare(node: ast.Compare, scope: Mapping[str, Any]) -> bool:
    left = _evaluate(node.left, scope)
    for op, item in zip(node.ops, node.comparators, strict=True):
        right = _evaluate(item, scope)
        if not _COMPARE[type(op)](left, right):
            return False
        left = right
    return True


def _item(value: Any, place: Any) -> Any:
    """`kernel_size[1]`; one number stands for any number of items, as in torch."""
    return value[place] if isinstance(value, (list, tuple)) else value
