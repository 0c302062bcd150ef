"""Typed arguments of a call as Python text, for programs and reproducers."""

from __future__ import annotations

import keyword
import math
from typing import Any, Dict, List, Tuple, Union

from fuzzing.cases.arguments import (
    Argument,
    Device,
    Dtype,
    Kwargs,
    Layout,
    MemoryFormat,
    Name,
    NewObject,
    TensorArg,
    TensorLiteral,
)


def render(argument: Argument) -> str:
    """The argument as a Python expression; inputs are their names."""
    if isinstance(argument, (list, tuple, dict, slice)):
        return _render_nested(argument)
    if isinstance(argument, float):
        return _render_float(argument)
    if isinstance(argument, complex):
        return f"complex({_render_float(argument.real)}, {_render_float(argument.imag)})"
    if isinstance(argument, (TensorArg, Name)):
        return argument.name
    if isinstance(argument, (Dtype, Layout, MemoryFormat)):
        return f"torch.{argument.name}"
    if isinstance(argument, Device):
        return f"torch.device({'DEVICE' if argument.name == 'cpu' else repr(argument.name)})"
    if isinstance(argument, TensorLiteral):
        return _render_literal(argument)
    if isinstance(argument, NewObject):
        return f"{argument.api}({render_call(argument.args, argument.kwargs)})"
    return "..." if argument is Ellipsis else repr(argument)


def _render_nested(argument: Union[List[Any], Tuple[Any, ...], Dict[str, Any], slice]) -> str:
    if isinstance(argument, dict):
        return "{" + ", ".join(f"{key!r}: {render(item)}" for key, item in argument.items()) + "}"
    if isinstance(argument, slice):
        return f"slice({render(argument.start)}, {render(argument.stop)}, {render(argument.step)})"
    items = ", ".join(render(item) for item in argument)
    if isinstance(argument, list):
        return f"[{items}]"
    return f"({items},)" if len(argument) == 1 else f"({items})"


def _render_float(value: float) -> str:
    return repr(value) if math.isfinite(value) else f'float("{value}")'


def _render_literal(literal: TensorLiteral) -> str:
    if not literal.values:
        return f"torch.empty({literal.shape!r}, dtype=torch.{literal.dtype})"
    nested: List[Any] = list(literal.values)
    for size in literal.shape[:0:-1]:
        nested = [nested[begin : begin + size] for begin in range(0, len(nested), size)]
    elements = render(nested if literal.shape else nested[0])
    return f"torch.tensor({elements}, dtype=torch.{literal.dtype})"


def render_call(args: Tuple[Argument, ...], kwargs: Kwargs) -> str:
    """The text between a call's parentheses."""
    plain = [f"{name}={render(value)}" for name, value in kwargs if not keyword.iskeyword(name)]
    odd = {name: value for name, value in kwargs if keyword.iskeyword(name)}  # torch has `from`
    return ", ".join([*map(render, args), *plain, *([f"**{render(odd)}"] if odd else [])])


def render_subscript(argument: Argument) -> str:
    """The text between the brackets of a subscript."""
    if isinstance(argument, tuple) and argument:
        return ", ".join(map(_render_index, argument)) + ("," if len(argument) == 1 else "")
    return _render_index(argument)


def _render_index(argument: Argument) -> str:
    if isinstance(argument, slice) and argument.step is None:
        return ":".join("" if part is None else render(part) for part in (argument.start, argument.stop))
    return render(argument)
