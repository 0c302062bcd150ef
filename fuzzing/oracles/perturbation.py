"""Perturbed inputs: moves inputs by one rounding, to measure a program's sensitivity.

A moved tensor is float64 (complex128), for a float64 run: x·(1 + 2u·r) with |r| ≤ 1 and u one rounding of x's
type. r is drawn from the bits of the number, so that equal numbers stay equal (`perturb_equally`), or for
each element (`perturb_independently`), so that ties break; the run with -r breaks them the other way. 0
stays: it is mostly a mask, a border or a default instead of a rounded result. In the runs with -r, subnormal
numbers of types that processors flush to zero, and -0, are 0: so a result that depends on them differs.

An input of an ONNX model that no rounding reaches stays (`fuzzing.backends.onnx_reference.exact_inputs`). If
the compiler computes a type in a narrower one (`Backend.computed_in`), u is a rounding of that one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from fuzzing.cases import Sequence, Tensor, Value
from fuzzing.oracles.element_types import ROUNDING, decode

Array = np.ndarray[Any, Any]
Named = tuple[tuple[str, Value], ...]

_SEED = 20
#: The least normal number of the types whose subnormal numbers processors may flush to zero (x86: MXCSR.DAZ
#: and FTZ). Those of float16 are normal in float32, in which it is computed.
_LEAST_NORMAL = {
    "bfloat16": 2.0**-126,
    "float32": 2.0**-126,
    "complex64": 2.0**-126,
    "float64": 2.0**-1022,
    "complex128": 2.0**-1022,
}
_NATIVE: Mapping[str, str] = MappingProxyType({})
_GRID = 4  # float64 itself has nothing between neighbors: its numbers move by up to this many


def perturb_equally(
    values: Named,
    sign: int,
    computed_in: Mapping[str, str] = _NATIVE,
    exact: Collection[str] = (),
) -> Named:
    """`values` with all floats moved, equal numbers by the same amount; `sign` 1 or -1.

    exact  names of values that no rounding reaches: of these only subnormal numbers and -0 change
    """
    return tuple((name, _value(value, sign, None, computed_in, name not in exact)) for name, value in values)


def perturb_independently(
    values: Named,
    sign: int,
    computed_in: Mapping[str, str] = _NATIVE,
    exact: Collection[str] = (),
) -> Named:
    """`values` with all floats moved, each by its own amount; `sign` 1 or -1, `exact` as above."""
    words = np.random.PCG64(_SEED)
    return tuple((name, _value(value, sign, words, computed_in, name not in exact)) for name, value in values)


def _value(
    value: Value,
    sign: int,
    words: np.random.PCG64 | None,
    computed_in: Mapping[str, str],
    rounded: bool,
) -> Value:
    if isinstance(value, Sequence):
        return Sequence(tuple(_tensor(item, sign, words, computed_in, rounded) for item in value.items))
    return _tensor(value, sign, words, computed_in, rounded) if isinstance(value, Tensor) else value


def _tensor(
    tensor: Tensor,
    sign: int,
    words: np.random.PCG64 | None,
    computed_in: Mapping[str, str],
    rounded: bool,
) -> Tensor:
    if tensor.dtype not in ROUNDING:
        return tensor
    dtype = computed_in.get(tensor.dtype, tensor.dtype)
    numbers = decode(tensor.dtype, tensor.array())
    real = (
        numbers.reshape(-1).view(f"f{numbers.dtype.itemsize // 2}") if numbers.dtype.kind == "c" else numbers
    )
    real = np.ascontiguousarray(real).reshape(-1)
    raw = _mix_bits(real) if words is None else np.asarray(words.random_raw(real.size), np.uint64)
    # The top 53 bits as a multiple of 2**-52 in [-1, 1), and never 0.
    fraction = (raw >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1 + 2.0**-53
    # What is computed in a narrower type is rounded to it first.
    step = 2 * ROUNDING[dtype][0] * sign if rounded or dtype != tensor.dtype else 0.0
    if dtype in ("float64", "complex128"):
        fraction = np.where(fraction > 0, np.ceil(fraction * _GRID), np.floor(fraction * _GRID))
    with np.errstate(all="ignore"):
        wide = real.astype(np.float64) * (1 + step * fraction)
    if sign < 0:
        wide = np.where(np.abs(wide) < _LEAST_NORMAL.get(dtype, 2.0**-1074), 0.0, wide)
    if numbers.dtype.kind == "c":
        return Tensor.of(wide.view(np.complex128).reshape(tensor.shape))
    return Tensor.of(wide.reshape(tensor.shape))


def _mix_bits(real: Array) -> Array:
    """64 well-mixed bits for each number, the same for the same number (splitmix64's finalizer)."""
    with np.errstate(invalid="ignore"):  # it may be a signalling NaN
        mixed = real.astype(np.float64).view(np.uint64).copy()
    for shift, times in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(times)
    return mixed ^ (mixed >> np.uint64(31))
