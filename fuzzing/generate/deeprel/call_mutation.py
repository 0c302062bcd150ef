"""Mutations of recorded calls, with DeepREL's probabilities."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from fuzzing.cases import Argument, Input, Recipe, Tensor, TensorArg
from fuzzing.cases.values import RAW_DTYPES, STRING, element_count
from fuzzing.errors import CaseFormatError
from fuzzing.generate.deeprel.call_transfer import Invocation

#: Probabilities, and the values that are taken from lists, all from DeepREL's code
#: (its utils/probability.py, classes/argument.py and classes/torch_api.py).
CHANGE_TYPE = 0.2
FROM_DATABASE = 0.2
FROM_LIST = 0.2
CHANGE_RANK, ADD_DIMENSION, CHANGE_DIMENSION, CHANGE_DTYPE = 0.1, 0.2, 0.5, 0.3
INTEGERS = (-16, -4, -2, -1, 0, 1, 2, 4, 16)
FLOATS = (0.0, 1.0, -1.0, 63.0, -63.0, 1024.0, -1024.0, 1e20, -1e20)
STRINGS = ("mean", "sum", "max", "zeros", "reflect", "circular", "replicate")
STEP = (-4, 3)  # added to a number, or to a dimension, both ends included
#: Element types that a recipe can draw.
DTYPES = ("float32", "float64", "float16", "int8", "int32", "int64", "uint8", "bool", "complex64")
_MOST_ELEMENTS = 1 << 16  # of a mutated tensor: what a library's own samples have, and some
_SCALARS = (bool, int, float, str)
_INT64 = 1 << 62  # numbers stay within what torch holds

T = TypeVar("T")


@dataclass
class Mutator:
    """Draws mutants of the recorded calls of one API.

    calls  the recorded calls, whose arguments are also the pool of values
    """

    calls: Sequence[Invocation]
    rng: random.Random

    def mutate(self) -> Invocation:
        """A recorded call with one to all of its arguments changed."""
        call = self._choice(self.calls)
        call_arguments = call.call_arguments or ((), ())
        places = [*call.bound, *range(len(call_arguments[0]))]
        chosen = set(self.rng.sample(places, self.rng.randint(1, len(places)))) if places else set()
        inputs = dict(call.inputs)
        bound = {
            name: self._argument(name, value, inputs) if name in chosen else value
            for name, value in call.bound.items()
        }
        args = tuple(
            self._value(value, inputs) if place in chosen else value
            for place, value in enumerate(call_arguments[0])
        )
        return replace(
            call,
            bound=bound,
            inputs=inputs,
            call_arguments=None if call.call_arguments is None else (args, call_arguments[1]),
        )

    def _choice(self, items: Sequence[T]) -> T:
        return items[self.rng.randrange(len(items))]

    def _chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def _argument(self, name: str, value: Argument, inputs: dict[str, Input]) -> Argument:
        """Another type, a value from another call, or a value near its own."""
        if type(value) in _SCALARS and self._chance(CHANGE_TYPE):
            other = self._choice([kind for kind in _SCALARS if kind is not type(value)])
            return self._value({bool: True, int: 0, float: 0.0, str: "max"}[other], inputs)
        if self._chance(FROM_DATABASE):
            return self._recorded(name, value, inputs)
        return self._value(value, inputs)

    def _recorded(self, name: str, value: Argument, inputs: dict[str, Input]) -> Argument:
        other = self._choice([call for call in self.calls if name in call.bound])
        taken = other.bound[name]
        if isinstance(taken, TensorArg):
            fresh = _unused_name(f"{taken.name}_db", inputs)
            inputs[fresh] = other.inputs[taken.name]
            return replace(taken, name=fresh)
        return value if isinstance(taken, (list, tuple, dict)) and _has_tensors(taken) else taken

    def _value(self, value: Argument, inputs: dict[str, Input]) -> Argument:
        if type(value) is bool:
            return not value
        if type(value) is int:
            return (
                self._choice(INTEGERS)
                if self._chance(FROM_LIST)
                else max(-_INT64, min(_INT64, value + self._step()))
            )
        if type(value) is float:
            return self._choice(FLOATS) if self._chance(FROM_LIST) else value + self._step()
        if type(value) is str:
            return self._choice(STRINGS) if self._chance(FROM_LIST) else value
        if type(value) in (list, tuple):
            return type(value)(self._value(item, inputs) for item in value)
        if isinstance(value, TensorArg) and value.layout == "strided":
            return self._tensor(value, inputs)
        return value

    def _step(self) -> int:
        return self.rng.randint(*STEP)

    def _tensor(self, value: TensorArg, inputs: dict[str, Input]) -> TensorArg:
        given = inputs[value.name]
        if not isinstance(given, (Tensor, Recipe)):
            return value
        shape = self._shape(given.shape)
        dtype = self._choice(DTYPES) if self._chance(CHANGE_DTYPE) else given.dtype
        if (shape, dtype) == (given.shape, given.dtype) or dtype in RAW_DTYPES or dtype == STRING:
            return value
        fresh = _unused_name(f"{value.name}_new", inputs)
        try:
            inputs[fresh] = _draw_recipe(given, dtype, shape, self.rng.getrandbits(32))
        except CaseFormatError:  # the old bounds are nothing that the new type can hold
            return value
        return TensorArg(fresh)

    def _shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        dims = list(shape)
        if self._chance(CHANGE_RANK):
            if self._chance(ADD_DIMENSION) or not dims:
                dims.insert(self.rng.randint(0, len(dims)), 1)
            else:
                dims.pop(self.rng.randrange(len(dims)))
        dims = [max(0, dim + self._step()) if self._chance(CHANGE_DIMENSION) else dim for dim in dims]
        return tuple(dims) if element_count(tuple(dims)) <= _MOST_ELEMENTS else tuple(shape)


def _unused_name(name: str, inputs: Mapping[str, Input]) -> str:
    return next(
        free for free in (name, *(f"{name}{n}" for n in range(len(inputs) + 1))) if free not in inputs
    )


def _has_tensors(value: Argument) -> bool:
    items: Sequence[Any] = list(value.values()) if isinstance(value, dict) else value
    return any(
        isinstance(item, TensorArg) or (isinstance(item, (list, tuple, dict)) and _has_tensors(item))
        for item in items
    )


def _draw_recipe(given: Tensor | Recipe, dtype: str, shape: tuple[int, ...], seed: int) -> Recipe:
    """A recipe between the least and the greatest element of the old value; raises CaseFormatError."""
    low, high = _bounds(given)
    if dtype == "bool":
        return Recipe("integers", dtype, shape, 0, 1, seed)
    if dtype.startswith(("int", "uint")):
        least = 0 if dtype.startswith("uint") else -100
        low, high = (min(100.0, max(least, float(np.floor(bound)))) for bound in (low, high))
        return Recipe("integers", dtype, shape, low, high, seed)
    return Recipe("uniform", dtype, shape, low, high if high > low else low + 1, seed)


def _bounds(given: Tensor | Recipe) -> tuple[float, float]:
    """The least and the greatest finite element, of complex ones their real parts; -1 and 1 if none is."""
    tensor = given.draw() if isinstance(given, Recipe) else given
    if tensor.dtype in RAW_DTYPES or tensor.dtype == STRING:
        return -1.0, 1.0
    numbers = np.real(tensor.array()).astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    if not finite.size:
        return -1.0, 1.0
    return max(float(finite.min()), -1e6), min(float(finite.max()), 1e6)
