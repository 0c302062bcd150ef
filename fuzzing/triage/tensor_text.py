"""Arrays as short numpy expressions: `np.zeros((2, 3))`, `np.arange(6.0)`, `np.array([1.5, nan])`."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import numpy as np

#: Elements that are written one by one: about two lines.
MAX_LISTED = 24
#: Characters of an expression that still counts as short.
MAX_EXPRESSION = 280
#: Bytes of an array that may be written in base64: one long line.
MAX_BYTES = 4096


def numpy_expression(array: np.ndarray[Any, Any]) -> str:
    """The shortest expression known that gives `array`, type and bits alike; "" where none is short.

    It uses `np` alone. Element types that numpy lacks have none.
    """
    for source in _candidates(array):
        if len(source) <= MAX_EXPRESSION and _is_exact(source, array):
            return source
    return ""


def _candidates(array: np.ndarray[Any, Any]) -> Iterator[str]:
    if not hasattr(np, _dtype_name(array)):
        return
    shape, dtype = _shape(array), f"np.{_dtype_name(array)}"
    if array.dtype.kind in "OUS":
        if array.size <= MAX_LISTED:
            yield f"np.array({array.tolist()!a}, dtype=object)"
        return
    if array.size > 1 or (array.size and array.ndim > 2):
        default = "" if array.dtype == np.float64 else f", {dtype}"
        yield f"np.zeros({shape}{default})"
        yield f"np.ones({shape}{default})"
        yield f"np.full({shape}, {_element(array.reshape(-1)[0])}, {dtype})"
        reshape = f".reshape({', '.join(map(str, array.shape))})" if array.ndim > 1 else ""
        if array.size > 3 and array.dtype.kind != "b":
            yield f"np.arange({array.size}, dtype={dtype}){reshape}"
            if array.size > 100:
                yield f"(np.arange({array.size}) % 100).astype({dtype}){reshape}"
    if not array.size:
        yield f"np.zeros({shape}, {dtype})"
    elif not array.ndim:
        yield f"np.array({_element(array[()])}, {dtype})"
    elif array.size <= MAX_LISTED:
        yield f"np.array({_nested(array)}, {dtype})"


def _dtype_name(array: np.ndarray[Any, Any]) -> str:
    name = str(array.dtype.name)
    return {"bool": "bool_", "object": "object_"}.get(name, name)


def _shape(array: np.ndarray[Any, Any]) -> str:
    return str(array.shape[0]) if array.ndim == 1 else repr(array.shape)


def _nested(array: np.ndarray[Any, Any]) -> str:
    if not array.ndim:
        return _element(array[()])
    return "[" + ", ".join(map(_nested, array)) + "]"


def _element(item: Any) -> str:
    """The shortest literal that gives the element: 0.1, not 0.10000000149011612."""
    if isinstance(item, np.floating):
        if not np.isfinite(item):
            return f"{'-' * (str(item) == '-inf')}np.{str(item)[-3:]}"
        if item and not 1e-4 <= abs(float(item)) < 1e16:
            return str(np.format_float_scientific(item, trim="-"))
        if item == int(item):
            return str(int(item)) if item or not np.signbit(item) else "-0.0"
        return str(item)  # format() would widen it to float64
    return repr(item.item())


def _is_exact(source: str, array: np.ndarray[Any, Any]) -> bool:
    """Whether `source`, which is ours and holds nothing but numbers, gives the array's bits."""
    try:
        with np.errstate(all="ignore"):
            made = eval(source, {"__builtins__": {"object": object}}, {"np": np})  # noqa: S307
    except (TypeError, ValueError, OverflowError, SyntaxError):
        return False
    made = np.asarray(made)
    if (made.dtype, made.shape) != (array.dtype, array.shape):
        return False
    return made.tolist() == array.tolist() if made.dtype == object else made.tobytes() == array.tobytes()


def bytes_expression(array: np.ndarray[Any, Any]) -> str:
    """An expression that decodes the array from base64, which uses `base64` and `np`; "" for large ones."""
    if array.nbytes > MAX_BYTES or array.dtype == object or not hasattr(np, array.dtype.name):
        return ""
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")
    return f'np.frombuffer(base64.b64decode("{data}"), np.{array.dtype.name}).reshape({array.shape})'


def torch_expression(array: np.ndarray[Any, Any]) -> str:
    """The same as `numpy_expression` for a torch tensor; it uses `torch` alone. "" where none is short."""
    source = numpy_expression(array)
    dtype = array.dtype.name
    if not source or (dtype.startswith("uint") and dtype != "uint8"):
        return ""
    named = f"torch.{dtype}"
    kind = source.removeprefix("np.").partition("(")[0]
    if kind in ("zeros", "ones", "full", "array", "arange"):
        numpy_name = f"np.{_dtype_name(array)}"
        spelled = source.replace(f", dtype={numpy_name})", f", dtype={named})", 1)
        spelled = spelled.replace(f", {numpy_name})", f", dtype={named})", 1)
        if "dtype=" not in spelled:  # numpy's default
            spelled = f"{spelled[:-1]}, dtype=torch.float64)"
        spelled = spelled.replace("np.array(", "torch.tensor(").replace("np.", "torch.")
        default = ", dtype=torch.float32)" if kind in ("zeros", "ones") else ", dtype=torch.int64)"
        return spelled.replace(default, ")") if kind != "full" else spelled
    return ""
