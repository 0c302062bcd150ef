"""Tolerances as a person writes them: short numbers, and only those that a helper's defaults do not give."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping


def short_number(value: float) -> str:
    """A tolerance as text: `1e-5`, `2.5e-4`, `0.01`, with six digits at most."""
    mantissa, _, exponent = f"{value:.5e}".partition("e")
    if int(exponent) > -3 or not value:
        return f"{value:g}"
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"


def power_of_ten(value: float) -> float:
    """The next power of ten that is not smaller; 0 for 0."""
    return float(f"1e{math.ceil(round(math.log10(value), 9))}") if value > 0 else 0.0


def keyword_text(given: Mapping[str, float], defaults: Mapping[str, object]) -> str:
    """Further arguments of a call, each with a comma before it: `, rtol=1e-3`; "" if all are the defaults."""
    return "".join(
        f", {name}={short_number(value)}"
        for name, value in given.items()
        if short_number(value) != _short(defaults.get(name))
    )


def read_defaults(source: str, function: str) -> dict[str, object]:
    """The defaults of a function or a method of a file that are literals; none if the file cannot be read."""
    try:
        nodes = ast.walk(ast.parse(source))
    except (SyntaxError, ValueError):
        return {}
    found = (one for one in nodes if isinstance(one, ast.FunctionDef) and one.name == function)
    if (node := next(found, None)) is None:
        return {}
    names = [one.arg for one in (*node.args.posonlyargs, *node.args.args)]
    last = zip(reversed(names), reversed(node.args.defaults), strict=False)
    only = zip((one.arg for one in node.args.kwonlyargs), node.args.kw_defaults, strict=True)
    return {name: value.value for name, value in (*last, *only) if isinstance(value, ast.Constant)}


def _short(value: object) -> str:
    return short_number(value) if isinstance(value, (int, float)) else ""
