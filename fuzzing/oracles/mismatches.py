"""Evidence of a difference: size, place, frequency, and the tolerance that would have passed it.

Computed only for wrong outputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fuzzing.cases import Tensor
from fuzzing.cases.values import STRING
from fuzzing.oracles.element_types import decode, is_float, ulp_ranks
from fuzzing.oracles.tolerance_profiles import Bounds
from fuzzing.outcomes import Mismatch

Array = np.ndarray[Any, Any]

_MAX_SHOWN = 80  # characters of one element in a message; strings can be long
_POWERS = np.array([1 << bit for bit in range(64)], np.uint64)


@dataclass(frozen=True)
class OutputPair:
    """An output and its reference: two tensors of one element type and one shape."""

    name: str
    got: Tensor
    want: Tensor

    @cached_property
    def mine(self) -> Array:
        """The output's numbers or strings."""
        return decode(self.got.dtype, self.got.array())

    @cached_property
    def reference(self) -> Array:
        """The reference's numbers or strings."""
        return decode(self.want.dtype, self.want.array())

    @cached_property
    def same(self) -> Array:
        """Where both are the same number or string; NaN equals NaN, 0 equals -0."""
        same: Array = np.equal(self.mine, self.reference).astype(bool)
        if self.mine.dtype.kind in "fc":
            same |= np.isnan(self.mine) & np.isnan(self.reference)
        return same

    @cached_property
    def distance(self) -> Array:
        """|got - want| without overflow: integers subtract the smaller from the larger, modulo 2**bits."""
        mine, reference = self.mine, self.reference
        if mine.dtype.kind in "iu":
            return _gap(mine, reference)
        wide = np.complex128 if mine.dtype.kind == "c" else np.float64
        distance: Array = np.abs(mine.astype(wide) - reference.astype(wide))
        return distance

    @cached_property
    def ulps(self) -> Array:
        """Number of representable values of a float type between both, as uint64."""
        mine, reference = self.got.array(), self.want.array()
        if self.want.dtype.startswith("complex"):
            part = f"f{mine.dtype.itemsize // 2}"
            width = "float32" if part == "f4" else "float64"
            both = _gap(
                ulp_ranks(width, mine.ravel().view(part)), ulp_ranks(width, reference.ravel().view(part))
            )
            farther: Array = both.reshape(*mine.shape, 2).max(axis=-1)
            return farther
        return _gap(ulp_ranks(self.want.dtype, mine), ulp_ranks(self.want.dtype, reference))


def mismatch(pair: OutputPair, wrong: Array, bounds: Bounds, detail: str = "") -> Mismatch:
    """The evidence that the elements where `wrong` holds, at least one, are wrong under `bounds`.

    `detail` is added to the description of the worst element.
    """
    with np.errstate(all="ignore"):
        worst = _worst(pair, wrong)
        mine, reference = _text(pair.mine[worst]), _text(pair.reference[worst])
        count = int(np.count_nonzero(wrong))
        max_abs, max_rel = _extremes(pair, wrong)
        return Mismatch(
            output=pair.name,
            kind="value",
            detail=f"{count} of {wrong.size} elements are wrong, worst at {list(worst)}: "
            f"{mine} instead of {reference}{_allowed(bounds)}{detail}",
            ratio=count / wrong.size,
            max_abs=max_abs,
            max_rel=max_rel,
            worst=worst,
            got=mine,
            want=reference,
            rtol=bounds.rtol,
            atol=bounds.atol,
            ulps=ulp_histogram(pair),
            passes_at=passes_at(pair),
        )


def ulp_histogram(pair: OutputPair) -> tuple[int, ...]:
    """How many elements are off by 0, 1, 2-3, 4-7, 8-15, … units in the last place, up to the farthest.

    A last number, possibly 0, counts elements that are NaN or infinite on one side only, or infinite with
    different signs. () for types that are not floats.
    """
    if not is_float(pair.want.dtype):
        return ()
    with np.errstate(all="ignore"):
        odd = ~pair.same & ~(np.isfinite(pair.mine) & np.isfinite(pair.reference))
        ulps = np.where(pair.same, np.uint64(0), pair.ulps)[~odd]
    bins = np.bincount(np.searchsorted(_POWERS, ulps, side="right"))
    return (*(int(count) for count in bins), int(np.count_nonzero(odd)))


def passes_at(pair: OutputPair) -> float | None:
    """The smallest t such that |got - want| ≤ t + t·|want| everywhere; None if NaN or infinity differ.

    None too for strings and bools, which have no tolerance.
    """
    if pair.want.dtype == STRING or pair.mine.dtype.kind == "b":
        return None
    with np.errstate(all="ignore"):
        wide = np.complex128 if pair.mine.dtype.kind == "c" else np.float64
        size = np.abs(pair.reference.astype(wide))
        needed = np.where(pair.same, 0.0, pair.distance.astype(np.float64) / (1 + size))
        most = float(needed.max(initial=0.0))
    # One rounding each for 1 + |want|, the quotient, and the two operations of the comparison.
    return most * (1 + 4 * 2.0**-52) if np.isfinite(most) else None


def _gap(one: Array, other: Array) -> Array:
    """|one - other| of integers, which always fits the unsigned type of their width."""
    gap: Array = np.where(one > other, one - other, other - one)
    return gap.view(gap.dtype.str.replace("i", "u"))


def _worst(pair: OutputPair, wrong: Array) -> tuple[int, ...]:
    """The wrong element farthest off; NaN and infinities precede all numbers."""
    if pair.want.dtype == STRING:
        flat = int(np.argmax(wrong))
    else:
        distance = pair.distance
        rank = np.where(np.isfinite(distance), distance, np.inf) if distance.dtype.kind == "f" else distance
        candidates = np.flatnonzero(wrong)
        flat = int(candidates[np.argmax(rank.ravel()[candidates])])
    return tuple(int(i) for i in np.unravel_index(flat, wrong.shape))


def _extremes(pair: OutputPair, wrong: Array) -> tuple[float | None, float | None]:
    """Largest absolute and relative error among the wrong elements; None with NaN or infinity.

    The relative error excludes elements whose reference is 0; None if no other is wrong.
    """
    if pair.want.dtype == STRING:
        return None, None
    gaps = pair.distance[wrong].astype(np.float64)
    if not np.isfinite(gaps).all():
        return None, None
    want = pair.reference[wrong]
    sizes = np.abs(want.astype(np.complex128 if want.dtype.kind == "c" else np.float64))
    nonzero = sizes > 0
    relative = float((gaps[nonzero] / sizes[nonzero]).max()) if nonzero.any() else None
    if relative is not None and not np.isfinite(relative):  # a denormal reference
        relative = None
    return float(gaps.max()), relative


def _allowed(bounds: Bounds) -> str:
    if bounds.ulps:
        return f" (allowed: {bounds.ulps} step of the type)"
    if bounds.decimals is not None:
        rule = f"equal to {bounds.decimals} decimal{'' if bounds.decimals == 1 else 's'}"
    elif bounds.rtol or bounds.atol:
        rule = f"{bounds.atol:g} + {bounds.rtol:g}·|reference|"
    else:
        return ""
    return f" (allowed: {rule}{_share(bounds)})"


def _share(bounds: Bounds) -> str:
    return f" for {100 * bounds.share:g} % of the elements" if bounds.share < 1 else ""


def _text(element: Any) -> str:
    """One element for people: strings quoted, numbers in full."""
    if isinstance(element, str):
        text = repr(element)
        return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 1] + "…"
    return str(element)
