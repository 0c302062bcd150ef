"""Tensors as Python source: readable numbers if that is exact, else bytes."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from bot.errors import InternalError
from fuzzing.cases import Absent, Sequence, Tensor, Value
from fuzzing.cases.values import CARRIERS, RAW_DTYPES, STRING

#: Tensors up to this many elements are written as numbers: about what fits on one screen.
READABLE_ELEMENTS = 96
WIDTH = 100  # columns of the embedded text


def literal(value: Value, indent: int = 4) -> str:
    """An expression for `value` in a reproducer, with the same bits.

    It uses `np`, `nan`, `inf`, `raw(dtype, shape, base64)` and `strings(shape, items)`, which every
    reproducer defines; continuation lines are indented by `indent`.
    """
    if isinstance(value, Absent):
        return "None"
    if isinstance(value, Sequence):
        items = "".join(f"\n{' ' * (indent + 4)}{literal(item, indent + 4)}," for item in value.items)
        return f"[{items}\n{' ' * indent}]" if items else "[]"
    if value.dtype == STRING:
        return f"strings({value.shape!r}, {value.array().ravel().tolist()!a})"
    return _uniform(value) or _numbers(value, indent) or _bytes(value, indent)


def base64_lines(data: bytes, indent: int = 4) -> str:
    """`data` in base64 as adjacent string literals, one a line."""
    text = base64.b64encode(data).decode("ascii")
    pad = " " * indent
    step = WIDTH - indent - 2
    return "\n".join(f'{pad}"{text[at : at + step]}"' for at in range(0, len(text), step)) or f'{pad}""'


def _uniform(value: Tensor) -> str:
    """`np.full(…)` for larger tensors of one value."""
    if value.dtype in RAW_DTYPES or len(value.data) <= READABLE_ELEMENTS:
        return ""
    array = value.array()
    first = array.reshape(-1)[:1]
    if first.tobytes() * array.size != value.data or not (
        array.dtype.kind != "c" or np.isfinite(first).all()
    ):
        return ""
    source = f"np.full({value.shape!r}, {first.tolist()[0]!r}, np.{_name(value)})"
    return source if _is_exact(source, value) else ""


def _numbers(value: Tensor, indent: int) -> str:
    """A nested list of numbers, "" if it would be unreadable or not exact."""
    array = value.array()
    if value.dtype in RAW_DTYPES or array.size > READABLE_ELEMENTS or not _has_literals(array):
        return ""
    body = np.array2string(
        array,
        separator=", ",
        threshold=READABLE_ELEMENTS + 1,
        max_line_width=WIDTH - indent,
        floatmode="unique",
        prefix=" " * (indent + 9),
        formatter={"all": _number(array)},
    )
    shape = f".reshape({value.shape!r})" if array.size == 0 else ""
    source = f"np.array({body if array.size else '[]'}, np.{_name(value)}){shape}"
    return source if _is_exact(source, value) else ""


def _has_literals(array: np.ndarray[Any, Any]) -> bool:
    """Whether Python has literals for the numbers: it has none for a complex NaN or infinity."""
    return array.dtype.kind != "c" or bool(np.isfinite(array).all())


def _number(array: np.ndarray[Any, Any]) -> Any:
    if array.dtype.kind == "f":
        # The shortest decimal with these bits in this type: 0.1, not 0.10000000149011612.
        return lambda x: np.format_float_scientific(x) if x and not 1e-4 <= abs(float(x)) < 1e16 else str(x)
    return lambda x: repr(x.item())


def _bytes(value: Tensor, indent: int) -> str:
    lines = base64_lines(value.data, indent + 4)
    return f'raw("{value.dtype}", {value.shape!r}, (\n{lines}\n{" " * indent}))'


def _name(value: Tensor) -> str:
    name = np.dtype(CARRIERS[value.dtype]).name
    return "bool_" if name == "bool" else name


def _is_exact(source: str, value: Tensor) -> bool:
    """Whether `source`, which we made of numbers only, evaluates to the tensor's bits."""
    names = {"np": np, "nan": float("nan"), "inf": float("inf")}
    try:
        with np.errstate(all="ignore"):
            array = eval(source, {"__builtins__": {}}, names)  # noqa: S307
    except (SyntaxError, NameError) as error:
        raise InternalError(f"a literal that is no Python: {source[:200]}") from error
    return (
        isinstance(array, np.ndarray)
        and array.dtype == np.dtype(CARRIERS[value.dtype])
        and array.shape == value.shape
        and array.tobytes() == value.data
    )


def text_literal(text: str) -> str:
    """A Python expression for `text`, verbatim if that preserves the characters."""
    plain = text.isascii() and all(char.isprintable() or char == "\n" for char in text)
    if plain and "\\" not in text and "'''" not in text and not text.endswith("'"):
        return f"'''\\\n{text}'''"
    lines = "\n".join(f"    {line!a}" for line in text.splitlines(keepends=True))
    return f"(\n{lines}\n)" if lines else "''"
