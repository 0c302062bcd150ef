"""Constants: made by specifications and read from inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fuzzing.cases.values import CARRIERS
from fuzzing.graph.intervals import Interval
from fuzzing.graph.ir import Array, Constant
from fuzzing.graph.operator_spec import ConstantInput, NodeContext


def make_constant(dtype: str, values: Sequence[float], shape: tuple[int, ...] | None = None) -> Constant:
    """A constant of an element type; a vector if no shape is given.

    dtype   an element type in `fuzzing.graph.types.ANY`
    values  its elements in row-major order, representable in the type; bfloat16 truncates further bits
    """
    if dtype == "bfloat16":
        array = (np.array(values, np.float32).view(np.uint32) >> 16).astype(CARRIERS[dtype])
    else:
        array = np.array(values, CARRIERS[dtype])
    return Constant(dtype, array if shape is None else array.reshape(shape))


def make_scalar(dtype: str, value: float) -> Constant:
    """A constant of rank 0."""
    return make_constant(dtype, (value,), ())


def numbers(constant: Constant) -> Array:
    """The elements as numbers: raw bits of bfloat16 become float32."""
    if constant.dtype == "bfloat16":
        return (constant.array.astype(np.uint32) << 16).view(np.float32)
    return constant.array


def bounds(constant: Constant) -> Interval:
    """The least and the largest element of a non-empty constant."""
    array = numbers(constant)
    return Interval(float(array.min()), float(array.max()))


def known_integers(context: NodeContext, position: int) -> list[int] | None:
    """The elements of an integer input, flat; None if it is not a constant."""
    return None if context.constants[position] is None else context.numbers(position)


def optional_integers(context: NodeContext, position: int, absent: Sequence[int]) -> list[int] | None:
    """As `known_integers`; `absent` if the input is omitted."""
    return known_integers(context, position) if context.given(position) else list(absent)


def requires_static_inputs(
    text: Callable[[NodeContext, Sequence[str]], str | None],
) -> Callable[[NodeContext, Sequence[str]], str | None]:
    """Wraps a torch form that spells out lengths and constants: None where they are unknown."""

    def written(context: NodeContext, names: Sequence[str]) -> str | None:
        if context.operator.primary >= 0 and not context.type(context.operator.primary).static:
            return None
        for position in range(context.degree):
            auxiliary = isinstance(context.operator.input_spec(position), ConstantInput)
            if auxiliary and context.given(position) and context.constants[position] is None:
                return None
        return text(context, names)

    return written
