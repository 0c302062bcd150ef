"""Boundary mutations: one parameter of a conforming call, emptied, zeroed or set to an extreme.

DocTer's: all-zero, extreme (the type's least or greatest), scalar (rank 0), empty list, one element zero,
None, empty string. Its NaN and Inf mutators are off, as in its release.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import numpy as np

from fuzzing.cases import Recipe, Tensor
from fuzzing.generate.docter.calls import Call
from fuzzing.generate.docter.value_profiles import FLOAT_MAX, INT_RANGE

Mutator = Callable[[Any, Random], Any]


def _zero(value: Any, _: Random) -> Any:
    if isinstance(value, (Recipe, Tensor)):
        return Recipe("constant", value.dtype, value.shape, 0, 0, 0)
    if isinstance(value, (list, tuple)):
        return type(value)(_zero(item, _) for item in value)
    return type(value)(0)


def _extreme(value: Any, rng: Random) -> Any:
    high = rng.random() < 0.5
    if isinstance(value, (list, tuple)):
        return type(value)(_extreme(item, rng) for item in value)
    if isinstance(value, (Recipe, Tensor)):
        return Recipe("constant", value.dtype, value.shape, _limit(value.dtype, high), 0, 0)
    if isinstance(value, int):
        return INT_RANGE["int32"][high]
    return FLOAT_MAX["float64"] if high else -FLOAT_MAX["float64"]


def _limit(dtype: str, high: bool) -> float:
    if dtype in INT_RANGE:
        return INT_RANGE[dtype][high]
    return FLOAT_MAX[dtype] if high else -FLOAT_MAX[dtype]


def _scalar(value: Any, _: Random) -> Any:
    if isinstance(value, (Recipe, Tensor)):
        array = (value.draw() if isinstance(value, Recipe) else value).array().ravel()[:1]
        first = array if array.size else np.zeros(1, array.dtype)
        return Tensor.of(first.reshape(()), value.dtype)
    return value[0] if value else 0


def _empty(value: Any, _: Random) -> Any:
    if isinstance(value, (Recipe, Tensor)):
        return Recipe("constant", value.dtype, (0, *value.shape[1:]), 0, 0, 0)
    return type(value)()


def _one_zero(value: Any, rng: Random) -> Any:
    array = np.array((value.draw() if isinstance(value, Recipe) else value).array())
    if array.size:
        array.reshape(-1)[rng.randrange(array.size)] = 0
    return Tensor.of(array, value.dtype)


def _none(_: Any, __: Random) -> Any:
    return None


#: By the kind of a value, the mutations that it can undergo.
MUTATORS: Mapping[str, Mapping[str, Mutator]] = {
    "tensor": {"zero": _zero, "extreme": _extreme, "scalar": _scalar, "empty": _empty, "one zero": _one_zero},
    "number": {"zero": _zero, "extreme": _extreme, "none": _none},
    "list": {"zero": _zero, "extreme": _extreme, "scalar": _scalar, "empty": _empty, "none": _none},
    "text": {"empty": _empty, "none": _none},
    "bool": {"none": _none},
    "other": {"none": _none},
}


def mutation_kind(value: Any) -> str:
    """The mutations a value can undergo: a key of MUTATORS."""
    if isinstance(value, (Recipe, Tensor)):
        return "tensor"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "text"
    if isinstance(value, (list, tuple)):
        numbers = value and all(
            isinstance(item, (int, float)) and not isinstance(item, bool) for item in value
        )
        return "list" if numbers else "other"
    return "other"


def mutate(call: Call, rng: Random) -> Call:
    """The call with one mutation of exactly one parameter; the call itself if it has none."""
    names = list(call.arguments)
    if not names:
        return call
    name = names[rng.randrange(len(names))]
    value = call.arguments[name]
    mutators = list(MUTATORS[mutation_kind(value)].values())
    changed = mutators[rng.randrange(len(mutators))](value, rng)
    return Call(call.record, {**call.arguments, name: changed})
