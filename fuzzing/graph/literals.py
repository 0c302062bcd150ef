"""Constants that specifications make, and what they read from those that are there."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fuzzing.cases.values import CARRIERS
from fuzzing.graph.intervals import Interval
from fuzzing.graph.ir import Array, Constant
from fuzzing.graph.operator import Auxiliary
from fuzzing.graph.site import Site


def literal(dtype: str, values: Sequence[float], shape: tuple[int, ...] | None = None) -> Constant:
    """A constant of an element type; a vector if no shape is given.

    dtype   an element type that `fuzzing.graph.types.ANY` lists
    values  its elements in row-major order, numbers that the type holds; bfloat16 cuts off further bits
    """
    if dtype == "bfloat16":
        array = (np.array(values, np.float32).view(np.uint32) >> 16).astype(CARRIERS[dtype])
    else:
        array = np.array(values, CARRIERS[dtype])
    return Constant(dtype, array if shape is None else array.reshape(shape))


def scalar(dtype: str, value: float) -> Constant:
    """A constant of rank 0."""
    return literal(dtype, (value,), ())


def numbers(constant: Constant) -> Array:
    """The elements as numbers: raw bits of bfloat16 become float32."""
    if constant.dtype == "bfloat16":
        return (constant.array.astype(np.uint32) << 16).view(np.float32)
    return constant.array


def bounds(constant: Constant) -> Interval:
    """The least and the largest element of a constant that is not empty."""
    array = numbers(constant)
    return Interval(float(array.min()), float(array.max()))


def whole_numbers(site: Site, position: int) -> list[int] | None:
    """The elements of an input of whole numbers, flat; None if it is no constant, so nobody knows them."""
    return None if site.constants[position] is None else site.numbers(position)


def optional_numbers(site: Site, position: int, absent: Sequence[int]) -> list[int] | None:
    """The same of an optional input; `absent` if it is left out."""
    return whole_numbers(site, position) if site.given(position) else list(absent)


def spelled(
    text: Callable[[Site, Sequence[str]], str | None],
) -> Callable[[Site, Sequence[str]], str | None]:
    """A torch form that writes lengths and constants out: None where they are not known."""

    def written(site: Site, names: Sequence[str]) -> str | None:
        if site.operator.lead >= 0 and not site.type(site.operator.lead).static:
            return None
        for position in range(site.degree):
            auxiliary = isinstance(site.operator.slot(position), Auxiliary)
            if auxiliary and site.given(position) and site.constants[position] is None:
                return None
        return text(site, names)

    return written
