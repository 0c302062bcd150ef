"""Simplifies inputs: shorter ones, then simple values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from fuzzing.cases import Recipe, Tensor
from fuzzing.cases.case import Input
from fuzzing.cases.plain_types import cast_tensor, plainer_types
from fuzzing.cases.values import RAW_DTYPES, STRING

Array = np.ndarray[Any, Any]

#: Elements that are simplified one by one; larger tensors are simplified only as a whole.
_MAX_ELEMENTS = 64


#: Families of element types with their common replacement.
_COMMON: tuple[dict[str, str], ...] = (
    dict.fromkeys(("float64", "float16", "bfloat16"), "float32"),
    dict.fromkeys(("int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8"), "int64"),
)


def plainer_replacements(dtypes: Iterable[str], *, of_graphs: bool = False) -> Iterator[dict[str, str]]:
    """Element types and what to put in their place: a family at once, then single types of those given.

    of_graphs  of a program whose reduction proves types, so that unsigned integers may be signed ones
               (`fuzzing.triage.type_needs`)
    """
    given = sorted(set(dtypes))
    yield from (family for family in _COMMON if not family.keys().isdisjoint(given))
    for dtype in given:
        for plain in plainer_types(dtype):
            if of_graphs or dtype.startswith("uint") == plain.startswith("uint"):
                yield {dtype: plain}


def cast_input(given: Input, dtype: str) -> Input:
    """The input in another element type, its numbers unchanged or rounded; as it is if that cannot be."""
    tensor = as_tensor(given)
    changed = None if tensor is None else cast_tensor(tensor, dtype)
    return given if changed is None else changed


def as_tensor(given: Input) -> Tensor | None:
    """An input as a tensor; None for sequences, optionals and texts, which are not reduced."""
    value = given.draw() if isinstance(given, Recipe) else given
    return value if isinstance(value, Tensor) and value.dtype != STRING else None


@lru_cache(maxsize=4096)
def complexity(given: Input) -> tuple[int, int, int]:
    """Complexity of an input: number of elements, of non-integers, and of values other than 0 and 1.

    The same number everywhere counts as one.
    """
    tensor = as_tensor(given)
    if tensor is None:
        return 0, 0, 0
    array = _as_numbers(tensor)
    if array is None or (array.size and (array == array.flat[0]).all()):
        array = np.zeros(0) if array is None else array.ravel()[:1]
    with np.errstate(invalid="ignore"):
        broken = int(np.count_nonzero(array != np.rint(array)))
    odd = int(np.count_nonzero((array != 0) & (array != 1)))
    return int(np.prod(tensor.shape, dtype=np.int64)), broken, odd


def simplify_input(given: Input) -> Iterator[Input]:
    """Simpler inputs of the same type and shape, simplest first."""
    tensor = as_tensor(given)
    if tensor is None or (array := _as_numbers(tensor)) is None or not array.size:
        return
    for number in (0, 1):
        yield Recipe("constant", tensor.dtype, tensor.shape, float(number), float(number), 0)
    for candidate in (np.arange(array.size).reshape(array.shape) % 100, np.rint(array), np.round(array, 1)):
        yield from _cast_exactly(candidate, tensor.dtype)
    if array.size <= _MAX_ELEMENTS:
        yield from _simplify_elements(array, tensor.dtype)


def simpler_numbers(number: float) -> Iterator[float]:
    """Simpler numbers of the same Python type, simplest first."""
    if isinstance(number, bool):
        if number:
            yield False
    elif isinstance(number, int):
        yield from (n for n in (0, 1, 2, number // 2) if abs(n) < abs(number))
    elif isinstance(number, float):
        near = float(round(number)) if math.isfinite(number) else 0.0
        yield from (x for x in (0.0, 1.0, 0.5, near) if number_complexity(x) < number_complexity(number))


def number_complexity(value: object) -> float:
    """Complexity of a number; 0 for other objects."""
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, int):
        return float(min(abs(value), 1 << 20))
    if isinstance(value, float):
        return 0.0 if value == 0 else 1.0 if value == 1 else 2.0 if value.is_integer() else 3.0
    return 0.0


def shorten_axis(given: Input, axis: int, length: int) -> Input | None:
    """The first `length` entries along an axis."""
    tensor = as_tensor(given)
    if tensor is None:
        return None
    index = (slice(None),) * axis + (slice(0, length),)
    return Tensor.of(np.ascontiguousarray(tensor.array()[index]), tensor.dtype)


def drop_axis(given: Input, axis: int) -> Input | None:
    """The first entry along an axis, without the axis."""
    tensor = as_tensor(given)
    if tensor is None or not tensor.shape[axis]:
        return None
    return Tensor.of(np.ascontiguousarray(tensor.array().take(0, axis)), tensor.dtype)


def shorter_lengths(length: int) -> Sequence[int]:
    """Shorter lengths worth trying, the shortest first."""
    return sorted({n for n in (1, 2, length // 2, length - 1) if 0 < n < length})


def _as_numbers(tensor: Tensor) -> Array | None:
    """The elements as numbers; None if they are raw bits or complex."""
    if tensor.dtype in RAW_DTYPES or tensor.dtype.startswith("complex"):
        return None
    return tensor.array().astype(np.float64)


def _simplify_elements(array: Array, dtype: str) -> Iterator[Input]:
    for place in range(array.size):
        for number in (0, 1, np.rint(array.flat[place])):
            if array.flat[place] != number:
                candidate = array.copy()
                candidate.flat[place] = number
                yield from _cast_exactly(candidate, dtype)


def _cast_exactly(array: Array, dtype: str) -> Iterator[Input]:
    """The array in an element type, if that holds its numbers exactly."""
    with np.errstate(all="ignore"):
        tensor = Tensor.of(array.astype(dtype), dtype)
    if np.array_equal(tensor.array().astype(np.float64), array) or dtype.startswith("float"):
        yield tensor
