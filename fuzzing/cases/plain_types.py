"""Which element types stand for others of their kind, and numbers in another type.

A fault that shows in several types of a kind is one bug, known by the plainest of them: the one that most
models have and that most parts of a compiler read alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from fuzzing.cases.values import RAW_DTYPES, STRING, Tensor

#: Kinds of element types, the plainest first: the common one, then those that hold the numbers of others or
#: that more models have. Of float8 those of the Open Compute Project (OFP8, 2023) stand before the others.
_KINDS = (
    ("float32", "float64", "float16", "bfloat16"),
    ("float32", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"),
    ("float32", "float4_e2m1fn"),
    ("int64", "int32", "uint8", "int8", "uint16", "int16", "uint32", "uint64"),
    ("int64", "int32", "uint8", "int8", "uint4", "int4", "uint2", "int2"),
)
_PLAINER = {
    name: tuple(dict.fromkeys(plain for kind in _KINDS if name in kind for plain in kind[: kind.index(name)]))
    for name in dict.fromkeys(name for kind in _KINDS for name in kind[1:])
}


def plainer_types(dtype: str) -> tuple[str, ...]:
    """The types of its kind that are plainer than this one, the plainest first; none for a common type."""
    return _PLAINER.get(dtype, ())


def plainest_type(dtype: str) -> str:
    """The common type of its kind."""
    return plainer_types(dtype)[0] if plainer_types(dtype) else dtype


def oddness(dtypes: Iterable[str]) -> int:
    """How far types are from the common ones of their kinds, all together."""
    return sum(len(plainer_types(dtype)) for dtype in dtypes)


def cast_tensor(tensor: Tensor, dtype: str) -> Tensor | None:
    """A tensor in another element type, its numbers unchanged or rounded; None for texts, and for types that
    numpy lacks where nothing else reads or writes them.
    """
    array = _numbers(tensor)
    if array is None:
        return None
    with np.errstate(all="ignore"):
        if dtype not in RAW_DTYPES:
            return Tensor.of(array.astype(dtype), dtype)
        extension = _extension(dtype)
        return None if extension is None else Tensor.of(array.astype(np.float32).astype(extension), dtype)


def _numbers(tensor: Tensor) -> np.ndarray[Any, Any] | None:
    if tensor.dtype == STRING:
        return None
    array = tensor.array()
    if tensor.dtype == "bfloat16":  # the upper half of a float32
        return (array.astype(np.uint32) << 16).view(np.float32)
    if tensor.dtype in RAW_DTYPES:
        extension = _extension(tensor.dtype)
        return None if extension is None else array.view(extension).astype(np.float32)
    return array


def _extension(dtype: str) -> np.dtype[Any] | None:
    """The extension of numpy for a type that it lacks, if it is there."""
    try:
        import ml_dtypes
    except ImportError:  # old releases' toolchains may lack it
        return None
    found = getattr(ml_dtypes, dtype, None)
    return None if found is None else np.dtype(found)
