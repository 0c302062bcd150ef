"""Properties of whole values: positive definite, increasing, distinct dimensions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from fuzzing.cases import Tensor

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class TensorForm:
    """A property of a tensor's elements.

    make   elements of a shape that have it: integers, so that they are the same on every machine
    holds  whether elements have it
    """

    make: Callable[[Random, tuple[int, ...]], Array]
    holds: Callable[[Array], bool]


def _whole(rng: Random, shape: tuple[int, ...], low: int, high: int) -> Array:
    count = int(np.prod(shape, dtype=np.int64))
    return np.array([rng.randint(low, high) for _ in range(count)], np.int64).reshape(shape)


def _symmetric(rng: Random, shape: tuple[int, ...]) -> Array:
    drawn = _whole(rng, shape, -4, 4)
    return drawn + np.swapaxes(drawn, -1, -2)


def _positive_definite(rng: Random, shape: tuple[int, ...]) -> Array:
    """M·Mᵀ + n·1 for integer M: symmetric, with no eigenvalue below n."""
    drawn = _whole(rng, shape, -2, 2)
    result: Array = drawn @ np.swapaxes(drawn, -1, -2) + shape[-1] * np.eye(shape[-1], dtype=np.int64)
    return result


def _triangular(rng: Random, shape: tuple[int, ...]) -> Array:
    """A Cholesky factor: lower, with a positive diagonal."""
    result: Array = np.tril(_whole(rng, shape, -4, 4), -1) + shape[-1] * np.eye(shape[-1], dtype=np.int64)
    return result


def _invertible(rng: Random, shape: tuple[int, ...]) -> Array:
    """Diagonally dominant, hence invertible."""
    result: Array = _whole(rng, shape, -1, 1) + 2 * shape[-1] * np.eye(shape[-1], dtype=np.int64)
    return result


def _increasing(rng: Random, shape: tuple[int, ...]) -> Array:
    result: Array = np.cumsum(_whole(rng, shape, 1, 3), axis=-1) if shape else _whole(rng, shape, 1, 3)
    return result


def _dominant(array: Array) -> bool:
    diagonal = np.abs(np.diagonal(array, axis1=-2, axis2=-1))
    return bool((2 * diagonal > np.abs(array).sum(-1)).all())


def _is_symmetric(array: Array) -> bool:
    return bool(np.array_equal(array, np.swapaxes(array, -1, -2)))


#: Forms of tensors; those of matrices are asked of tensors whose last two dimensions are equal.
FORMS: Mapping[str, TensorForm] = {
    "symmetric": TensorForm(_symmetric, _is_symmetric),
    "positive definite": TensorForm(
        _positive_definite, lambda array: _is_symmetric(array) and bool((np.linalg.eigvalsh(array) > 0).all())
    ),
    "triangular": TensorForm(
        _triangular,
        lambda array: bool(
            np.array_equal(array, np.tril(array)) and (np.diagonal(array, axis1=-2, axis2=-1) > 0).all()
        ),
    ),
    "invertible": TensorForm(_invertible, _dominant),
    "increasing": TensorForm(
        _increasing, lambda array: bool((np.diff(array, axis=-1) > 0).all()) if array.ndim else True
    ),
}
DISTINCT = "distinct dimensions"
FACTORS = "lengths of as many elements"
EXPANSION = "lengths to broadcast to"


def make_tensor(name: str, rng: Random, shape: tuple[int, ...], dtype: str) -> Tensor:
    """A tensor of a form; `shape` must be square at its end for the forms of matrices."""
    return Tensor.of(FORMS[name].make(rng, shape).astype(dtype), dtype)


def draw_factors(rng: Random, count: int) -> list[int]:
    """Lengths whose product is `count`."""
    found, rest = [], count
    for prime in (2, 3, 5, 7, 11, 13, 17, 19):
        while rest > 1 and rest % prime == 0:
            found.append(prime)
            rest //= prime
    found.append(rest)
    while len(found) > 1 and rng.random() < 0.6:
        place = rng.randrange(len(found) - 1)
        found[place : place + 2] = [found[place] * found[place + 1]]
    return found


def draw_expansion(rng: Random, shape: tuple[int, ...]) -> list[int]:
    """Lengths that a tensor of `shape` broadcasts to."""
    front = [rng.randrange(3) + 1 for _ in range(rng.randrange(2))]
    return [*front, *(rng.randrange(4) + 1 if length == 1 else length for length in shape)]


def are_distinct(values: Any, rank: int) -> bool:
    """Whether no dimension of a tensor of `rank` is named twice."""
    rank = max(rank, 1)
    places = [value % rank for value in values]
    return len(set(places)) == len(places)
