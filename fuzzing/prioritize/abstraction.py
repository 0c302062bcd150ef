"""Partitions of parameter values, as in OPERA's paper and as in its released code.

A partition maps a parameter to abstract ones; two values in one subspace of it have equal abstract values.
docs/prioritization.md lists the differences between the two.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable, Iterator
from functools import lru_cache
from typing import Any

from fuzzing.prioritize.call_binding import JSON, OUTPUT
from fuzzing.prioritize.instances import Instance

#: The abstract value of a parameter that this instance lacks and another of its operator has.
ABSENT: Hashable = ("absent",)
#: Suffixes of abstract parameters. The first `.shape` decides which instances are filtered.
SHAPE, DTYPE, LAYOUT = ".shape", ".dtype", ".layout"

Abstract = dict[str, Hashable]
#: The abstract parameters that one parameter becomes: (name, value, frontend) → (name, abstract value)s.
Partition = Callable[[str, JSON, str], tuple[tuple[str, Hashable], ...]]

_NONE = -100  # code of None in the released code
_BATCH = 2  # code of None as the first item of a list in the released code


# As in the released code (`case.py`, `encode.py`)


def abstract_as_released_code(instance: Instance) -> Abstract:
    """A tensor is two parameters, its shape and its dtype; bool is an int; floats have two classes.

    Values without a class, which the released code rejects for Keras and ONNX, are their text, as for torch.
    """
    return abstract(instance, partition_of_released_code)


def partition_of_released_code(name: str, value: JSON, frontend: str) -> tuple[tuple[str, Hashable], ...]:
    """See `abstract_as_released_code`."""
    if not isinstance(value, dict) or "tensor" not in value:
        return ((name, _code_value(value, frontend)),)
    dtype, shape = value["tensor"]
    found = ((name + SHAPE, code_shape(tuple(shape), frontend)), (name + DTYPE, dtype))
    return (*found, (name + LAYOUT, value["layout"])) if "layout" in value else found


def abstract_again(value: Hashable, frontend: str) -> Hashable:
    """An abstract value taken for a value, as the released code takes defaults: None becomes one below -1."""
    return _code_value(_as_json(value), frontend)


def _as_json(value: Hashable) -> JSON:
    return [_as_json(item) for item in value] if isinstance(value, tuple) else value


def _code_value(value: JSON, frontend: str) -> Hashable:
    value = normalize_value(value)
    if value is None:
        return _NONE
    if isinstance(value, int):
        return _code_int(int(value), frontend)
    if isinstance(value, list):
        return _code_list(value, frontend)
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return 0.1 if value > 0 else -0.1
    if isinstance(value, dict) and "tensor" in value:
        dtype, shape = value["tensor"]
        return (code_shape(tuple(shape), frontend), dtype, value.get("layout", ""))
    return json.dumps(value, sort_keys=True)


def _code_int(value: int, frontend: str) -> int:
    if value < -1:
        return -2
    if value <= 1:
        return value
    if frontend != "torch":
        return 2
    return 2 if value < 10 else 10 if value < 100 else 100 if value < 1000 else 1000


def _code_list(values: list[JSON], frontend: str) -> Hashable:
    """Item by item; a list of two is followed by a comparison, of raw values or (ONNX) abstract ones."""
    items = tuple(_code_item(place, value, frontend) for place, value in enumerate(values))
    if len(items) != 2:
        return items
    first, second = items if frontend == "onnx" else (normalize_value(values[0]), normalize_value(values[1]))
    return (*items, _relation(first, second))


@lru_cache(maxsize=1 << 16)  # a suite repeats few shapes
def code_shape(shape: tuple[int, ...], frontend: str) -> Hashable:
    """A tensor's abstract shape."""
    return _code_list(list(shape), frontend)


def _code_item(place: int, value: JSON, frontend: str) -> Hashable:
    if value.__class__ is int:  # most items are dimensions
        return _code_int(value, frontend)
    if value is None:
        return _NONE if place else _BATCH
    if isinstance(value, float) and frontend == "torch":
        return value
    return _code_value(value, frontend)


def _relation(first: Any, second: Any) -> int:
    """0 if equal, -1 if the first is less or the two do not compare, 1 if it is greater."""
    try:
        return 0 if first == second else 1 if first > second else -1
    except TypeError:
        return -1


# As in the paper


def abstract_as_paper(instance: Instance) -> Abstract:
    """bools, texts and dtypes are themselves, integers have five classes, floats three.

    A tensor is one parameter: its dtype, its rank's class, and each dimension's. Where the paper is silent: a
    list goes item by item, a complex number by the classes of its parts, NaN has a class of its own, and
    outputs of an ONNX node are not parameters.
    """
    return abstract(instance, partition_of_paper)


def partition_of_paper(name: str, value: JSON, _: str) -> tuple[tuple[str, Hashable], ...]:
    """See `abstract_as_paper`."""
    return () if name.startswith(OUTPUT) else ((name, _paper_value(value)),)


def _paper_value(value: JSON) -> Hashable:
    value = normalize_value(value)
    if value is None or isinstance(value, (bool, str)):
        return ("enum", value)
    if isinstance(value, int):
        return ("int", max(-2, min(2, value)))
    if isinstance(value, float):
        return ("float", "nan" if math.isnan(value) else (value > 0) - (value < 0))
    if isinstance(value, list):
        return tuple(map(_paper_value, value))
    if "tensor" in value:
        dtype, shape = value["tensor"]
        dims = tuple(max(-2, min(2, dim)) for dim in shape)
        return ("tensor", dtype, min(len(shape) + 1, 7), dims, value.get("layout", ""))
    if "complex" in value:
        return ("complex", *map(_paper_value, value["complex"]))
    return ("enum", json.dumps(value, sort_keys=True))


# Shared


def abstract(instance: Instance, partition: Partition) -> Abstract:
    """The abstract parameters of an instance."""
    frontend = instance.frontend
    return {
        key: value for name, given in instance.parameters for key, value in partition(name, given, frontend)
    }


def normalize_value(value: JSON) -> JSON:
    """A tuple as a list, an infinity or NaN as a float; anything else unchanged."""
    if isinstance(value, dict) and len(value) == 1:
        if "tuple" in value:
            return value["tuple"]
        if "float" in value:
            return float(value["float"])
    return value


def iter_tensors(value: JSON) -> Iterator[tuple[str, list[int]]]:
    """The dtypes and shapes of the tensors in a value, outermost first."""
    if isinstance(value, dict):
        if "tensor" in value:
            yield value["tensor"][0], value["tensor"][1]
            return
        for item in value.values():
            yield from iter_tensors(item)
    elif isinstance(value, list):
        for item in value:
            yield from iter_tensors(item)
