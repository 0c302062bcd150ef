"""Comparing outputs with the reference: every difference is told, the first does not hide the rest.

NaN equals NaN, infinities must agree in sign, both zeros are equal, empty tensors pass. Equal bytes are
recognised before anything is decoded, since this runs once per case beside a compile of a millisecond.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fuzzing.cases import Absent, Sequence, Tensor, Tolerance, Value
from fuzzing.cases.case import Comparison
from fuzzing.cases.values import STRING
from fuzzing.oracles.decode import decode, ranks
from fuzzing.oracles.profiles import Bounds, Profile, profile_named
from fuzzing.outcomes import Mismatch

Array = np.ndarray[Any, Any]
Outputs = tuple[tuple[str, Value], ...]

_MAX_SHOWN = 80  # characters of one element in a message; strings can be long


def compare(
    expected: Outputs,
    outputs: Outputs,
    *,
    tolerance: Tolerance | None = None,
    comparison: Comparison = "values",
    profile: str = "default",
) -> tuple[Mismatch, ...]:
    """How `outputs` differ from `expected`, in its order; () if they do not.

    Outputs are found by name, and by position where the compiler gave one another name; outputs that
    nobody expects are passed over. `comparison` "shapes" leaves the elements out.
    """
    bounds = profile_named(profile)
    found: list[Mismatch] = []
    for (name, want), got in zip(expected, _matched(expected, outputs), strict=True):
        if got is want or got == want:  # the same bytes
            continue
        if got is None:
            found.append(Mismatch(name, "missing", "the compiled program gives no such output"))
        else:
            found.extend(_differences(name, got, want, tolerance, comparison, bounds))
    return tuple(found)


def _matched(expected: Outputs, outputs: Outputs) -> list[Value | None]:
    """For each expected output what the compiled program gave for it."""
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


def _differences(
    name: str, got: Value, want: Value, own: Tolerance | None, comparison: Comparison, profile: Profile
) -> Iterator[Mismatch]:
    if isinstance(want, Tensor) and isinstance(got, Tensor):
        difference = _tensors(name, got, want, own, comparison, profile)
        if difference:
            yield difference
    elif isinstance(want, Sequence) and isinstance(got, Sequence):
        if len(got.items) != len(want.items):
            detail = f"a sequence of {len(got.items)} tensors instead of {len(want.items)}"
            yield Mismatch(name, "shape", detail)
            return
        for index, (mine, reference) in enumerate(zip(got.items, want.items, strict=True)):
            difference = _tensors(f"{name}[{index}]", mine, reference, own, comparison, profile)
            if difference:
                yield difference
    elif type(got) is not type(want):
        yield Mismatch(name, "type", f"{_kind(got)} instead of {_kind(want)}")


def _kind(value: Value) -> str:
    if isinstance(value, Absent):
        return "nothing"
    return "a sequence" if isinstance(value, Sequence) else "a tensor"


def _tensors(
    name: str, got: Tensor, want: Tensor, own: Tolerance | None, comparison: Comparison, profile: Profile
) -> Mismatch | None:
    if got.dtype != want.dtype:
        return Mismatch(name, "type", f"{got.dtype} instead of {want.dtype}")
    if got.shape != want.shape:
        return Mismatch(name, "shape", f"shape {list(got.shape)} instead of {list(want.shape)}")
    if got.data == want.data or comparison == "shapes":
        return None
    if want.dtype == STRING:
        return _strings(name, got.array(), want.array())
    bounds = profile(want.dtype, own)
    with np.errstate(all="ignore"):
        return _numbers(name, got, want, bounds)


def _strings(name: str, got: Array, want: Array) -> Mismatch | None:
    wrong = np.not_equal(got, want).astype(bool)
    if not wrong.any():
        return None
    return _mismatch(name, got, want, wrong, int(np.argmax(wrong)), None, Bounds())


def _numbers(name: str, raw_got: Tensor, raw_want: Tensor, bounds: Bounds) -> Mismatch | None:
    got = decode(raw_got.dtype, raw_got.array())
    want = decode(raw_want.dtype, raw_want.array())
    if bounds.steps:
        near = np.abs(ranks(raw_got.dtype, raw_got.array()) - ranks(raw_want.dtype, raw_want.array()))
        wrong = (near > bounds.steps) | ~np.isfinite(got) | ~np.isfinite(want)
        wrong &= got != want
    elif got.dtype.kind in "biu" and not (bounds.rtol or bounds.atol):
        wrong = got != want
    else:
        return _floats(name, got, want, bounds)
    if got.dtype.kind == "f":
        wrong &= ~((got != got) & (want != want))
    if not wrong.any():
        return None
    return _worst(name, got, want, wrong, _distance(got, want), bounds)


def _floats(name: str, got: Array, want: Array, bounds: Bounds) -> Mismatch | None:
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    mine, reference = got.astype(wide), want.astype(wide)
    distance, size = np.abs(mine - reference), np.abs(reference)
    bounds = _settled(bounds, size)
    right = distance <= bounds.atol + bounds.rtol * size
    if not right.all() or not np.isfinite(reference).all():
        right &= np.isfinite(reference)  # beside an infinite bound everything would be near
        right |= mine == reference
        right |= np.isnan(mine) & np.isnan(reference)
    if right.all():
        return None
    return _worst(name, got, want, ~right, distance, bounds)


def _settled(bounds: Bounds, size: Array) -> Bounds:
    """The bounds with their noise, which depends on the reference, made part of atol."""
    if not bounds.noise or not size.size:
        return bounds
    largest = float(size.max())
    if not np.isfinite(largest):
        largest = float(size.max(where=np.isfinite(size), initial=0.0))
    return replace(bounds, atol=bounds.atol + bounds.noise * largest, noise=0.0)


def bounds_of(want: Tensor, own: Tolerance | None, profile: str = "default") -> Bounds:
    """The bounds under which an output is compared with the reference `want`."""
    bounds = profile_named(profile)(want.dtype, own)
    if not bounds.noise:
        return bounds
    with np.errstate(all="ignore"):
        return _settled(bounds, np.abs(decode(want.dtype, want.array())).astype(np.float64))


def _distance(got: Array, want: Array) -> Array:
    """|got - want| without overflow: integers subtract the smaller from the larger, modulo 2**bits."""
    if got.dtype.kind not in "iu":
        return np.abs(got.astype(np.float64) - want.astype(np.float64))
    gap: Array = np.where(got > want, got - want, want - got)
    return gap.view(gap.dtype.str.replace("i", "u"))


def _worst(name: str, got: Array, want: Array, wrong: Array, distance: Array, bounds: Bounds) -> Mismatch:
    """The element farthest off among the wrong ones; NaN and infinities come before all numbers."""
    if distance.dtype.kind == "f":
        rank = np.where(np.isfinite(distance), distance, np.inf)
    else:
        rank = distance
    candidates = np.flatnonzero(wrong)
    flat = int(candidates[np.argmax(rank.ravel()[candidates])])
    return _mismatch(name, got, want, wrong, flat, distance, bounds)


def _mismatch(
    name: str, got: Array, want: Array, wrong: Array, flat: int, distance: Array | None, bounds: Bounds
) -> Mismatch:
    worst = tuple(int(i) for i in np.unravel_index(flat, want.shape))
    mine, reference = _text(got[worst]), _text(want[worst])
    count = int(np.count_nonzero(wrong))
    max_abs, max_rel = (None, None) if distance is None else _extremes(distance, want, wrong)
    return Mismatch(
        output=name,
        kind="value",
        detail=f"{count} of {wrong.size} elements are wrong, worst at {list(worst)}: "
        f"{mine} instead of {reference}{_allowed(bounds)}",
        ratio=count / wrong.size,
        max_abs=max_abs,
        max_rel=max_rel,
        worst=worst,
        got=mine,
        want=reference,
        rtol=bounds.rtol,
        atol=bounds.atol,
    )


def _extremes(distance: Array, want: Array, wrong: Array) -> tuple[float | None, float | None]:
    """Largest absolute and relative error among the wrong elements; None beside NaN or infinity.

    The relative error leaves out elements that ought to be 0; None if no other is wrong.
    """
    gaps = distance[wrong].astype(np.float64)
    if not np.isfinite(gaps).all():
        return None, None
    sizes = np.abs(want[wrong].astype(np.complex128 if want.dtype.kind == "c" else np.float64))
    nonzero = sizes > 0
    relative = float((gaps[nonzero] / sizes[nonzero]).max()) if nonzero.any() else None
    if relative is not None and not np.isfinite(relative):  # a denormal reference
        relative = None
    return float(gaps.max()), relative


def _allowed(bounds: Bounds) -> str:
    if bounds.steps:
        return f" (allowed: {bounds.steps} step of the type)"
    if bounds.rtol or bounds.atol:
        return f" (allowed: {bounds.atol:g} + {bounds.rtol:g}·|reference|)"
    return ""


def _text(element: Any) -> str:
    """One element for people: strings quoted, numbers in full."""
    if isinstance(element, str):
        text = repr(element)
        return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 1] + "…"
    return str(element)
