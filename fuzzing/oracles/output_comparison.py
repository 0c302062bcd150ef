"""Compares outputs with the reference; reports all differences.

NaN equals NaN, infinities must agree in sign, both zeros are equal, empty tensors pass. Equal bytes are
recognized before decoding, since this runs once per case beside compilations of a millisecond.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from fuzzing.cases import Absent, Sequence, Tensor, Tolerance, Value
from fuzzing.cases.case import Comparison
from fuzzing.cases.values import STRING
from fuzzing.oracles.element_types import decode
from fuzzing.oracles.mismatches import OutputPair, mismatch
from fuzzing.oracles.tolerance_profiles import Bounds, Profile, get_profile
from fuzzing.outcomes import Mismatch

Array = np.ndarray[Any, Any]
_DIRECT_DTYPES = (
    "float32",
    "float64",
)  # no raw carriers, and not so coarse that a distance would be rounded away
Outputs = tuple[tuple[str, Value], ...]


def compare(
    expected: Outputs,
    outputs: Outputs,
    *,
    tolerance: Tolerance | None = None,
    comparison: Comparison = "values",
    profile: str = "default",
    computed_in: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Mismatch, ...]:
    """How `outputs` differ from `expected`, in its order; () if they do not.

    Outputs are matched by name, or by position if the compiler renamed them; further outputs are ignored.
    `comparison` "shapes" does not compare elements. `computed_in`: `fuzzing.backends.base.Backend`.
    """
    bounds = narrowed(get_profile(profile), computed_in)
    found: list[Mismatch] = []
    for (name, want), got in zip(expected, match_outputs(expected, outputs), strict=True):
        if got is want or got == want or _obviously_close(got, want, bounds, tolerance):
            continue
        for part, mine, reference in split_sequences(name, got, want):
            found.extend(_difference(part, mine, reference, tolerance, comparison, bounds))
    return tuple(found)


def narrowed(profile: Profile, computed_in: Mapping[str, str]) -> Profile:
    """The profile with the bounds of the types that the compiler computes in."""
    if not computed_in:
        return profile
    return lambda dtype, own: profile(computed_in.get(dtype, dtype), own)


def match_outputs(expected: Outputs, outputs: Outputs) -> list[Value | None]:
    """The compiled program's output for each expected one."""
    if [name for name, _ in expected] == [name for name, _ in outputs]:
        return [value for _, value in outputs]
    by_name: Mapping[str, Value] = dict(outputs)
    wanted = {name for name, _ in expected}
    found: list[Value | None] = []
    for position, (name, _) in enumerate(expected):
        value = by_name.get(name)
        if value is None and position < len(outputs) and outputs[position][0] not in wanted:
            value = outputs[position][1]  # renamed
        found.append(value)
    return found


def split_sequences(name: str, got: Value | None, want: Value) -> Iterator[tuple[str, Value | None, Value]]:
    """An output and its reference, sequences of one length item by item: "y[0]", "y[1]", …"""
    if isinstance(want, Sequence) and isinstance(got, Sequence) and len(got.items) == len(want.items):
        for index, (mine, reference) in enumerate(zip(got.items, want.items, strict=True)):
            yield f"{name}[{index}]", mine, reference
    else:
        yield name, got, want


def _difference(
    name: str,
    got: Value | None,
    want: Value,
    own: Tolerance | None,
    comparison: Comparison,
    profile: Profile,
) -> Iterator[Mismatch]:
    if got is None:
        yield Mismatch(name, "missing", "the compiled program gives no such output")
    elif isinstance(want, Sequence) and isinstance(got, Sequence):
        detail = f"a sequence of {len(got.items)} tensors instead of {len(want.items)}"
        yield Mismatch(name, "shape", detail)
    elif type(got) is not type(want):
        yield Mismatch(name, "type", f"{_kind(got)} instead of {_kind(want)}")
    elif isinstance(want, Tensor) and isinstance(got, Tensor):
        yield from _tensors(name, got, want, own, comparison, profile)


def _kind(value: Value) -> str:
    if isinstance(value, Absent):
        return "nothing"
    return "a sequence" if isinstance(value, Sequence) else "a tensor"


def _tensors(
    name: str, got: Tensor, want: Tensor, own: Tolerance | None, comparison: Comparison, profile: Profile
) -> Iterator[Mismatch]:
    if got.dtype != want.dtype:
        yield Mismatch(name, "type", f"{got.dtype} instead of {want.dtype}")
    elif got.shape != want.shape:
        yield Mismatch(name, "shape", f"shape {list(got.shape)} instead of {list(want.shape)}")
    elif got.data != want.data and comparison != "shapes":
        pair = OutputPair(name, got, want)
        bounds = resolve_noise(profile(want.dtype, own), pair.reference)
        right = elements_within(pair, bounds)
        if not right.all() and np.count_nonzero(right) < bounds.share * right.size:
            yield mismatch(pair, ~right, bounds)


def _obviously_close(got: Value | None, want: Value, profile: Profile, own: Tolerance | None) -> bool:
    """Whether no element is farther off than `atol`, which suffices under any bounds that have one.

    This decides most outputs that are not byte-equal. The distance is rounded in their own type, by a
    relative 2**-24 at most, so the limit is slightly smaller.
    """
    if not isinstance(got, Tensor) or not isinstance(want, Tensor):
        return False
    if want.dtype not in _DIRECT_DTYPES or (got.dtype, got.shape) != (want.dtype, want.shape):
        return False
    atol = profile(want.dtype, own).atol
    if not atol:
        return False
    with np.errstate(all="ignore"):
        distances = np.abs(got.array() - want.array())
        farthest = np.maximum.reduce(distances, axis=None)
    return bool(farthest <= atol * (1 - 2.0**-20))  # false for NaN


def elements_within(pair: OutputPair, bounds: Bounds) -> Array:
    """Mask of the elements within `bounds`, which must be resolved; their share is not applied."""
    with np.errstate(all="ignore"):
        if pair.want.dtype == STRING:
            return pair.same
        if bounds.skip_nan and (_any_nan(pair.mine) or _any_nan(pair.reference)):
            return np.ones(pair.reference.shape, bool)
        if bounds.ulps:
            near = (pair.ulps <= bounds.ulps) & np.isfinite(pair.mine) & np.isfinite(pair.reference)
            return near | pair.same
        if bounds.decimals is not None:
            return _equal_when_rounded(pair, bounds.decimals)
        if bounds.rtol or bounds.atol:
            return _elements_near(pair, bounds)
        return pair.same


def _elements_near(pair: OutputPair, bounds: Bounds) -> Array:
    wide = np.complex128 if pair.mine.dtype.kind == "c" else np.float64
    reference = pair.reference.astype(wide)
    size = np.abs(reference)
    right: Array = np.abs(pair.mine.astype(wide) - reference) <= bounds.atol + bounds.rtol * size
    if not right.all() or not np.isfinite(size).all():
        right &= np.isfinite(size)  # with an infinite bound everything would be within
        right |= pair.same
    return right


def _equal_when_rounded(pair: OutputPair, decimals: int) -> Array:
    if pair.mine.dtype.kind not in "fc":
        return pair.same
    equal: Array = np.round(pair.mine, decimals) == np.round(pair.reference, decimals)
    return equal | pair.same


def _any_nan(array: Array) -> bool:
    return array.dtype.kind in "fc" and bool(np.isnan(array).any())


def resolve_noise(bounds: Bounds, reference: Array) -> Bounds:
    """The bounds with their noise, which depends on the reference's numbers, added to atol."""
    if not bounds.noise or not reference.size:
        return replace(bounds, noise=0.0) if bounds.noise else bounds
    with np.errstate(all="ignore"):
        size = np.abs(reference).astype(np.float64)
    largest = float(size.max(where=np.isfinite(size), initial=0.0))
    return replace(bounds, atol=bounds.atol + bounds.noise * largest, noise=0.0)


def bounds_for(
    want: Tensor,
    own: Tolerance | None,
    profile: str = "default",
    computed_in: Mapping[str, str] = MappingProxyType({}),
) -> Bounds:
    """The bounds for comparing an output with the reference `want`; `computed_in` as for `compare`."""
    bounds = narrowed(get_profile(profile), computed_in)(want.dtype, own)
    return resolve_noise(bounds, decode(want.dtype, want.array())) if bounds.noise else bounds
