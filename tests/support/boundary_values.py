"""Inputs at the bounds that specifications allow, where wrong bounds show."""

from __future__ import annotations

import numpy as np
import pytest

from fuzzing.graph import TensorType, intervals
from fuzzing.graph.intervals import BOOLEAN, Interval
from fuzzing.rng import Rng
from tests.support import operators
from tests.support.operators import Array, fill


def use_boundary_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes placeholders allow their full range and fills them with its bounds."""
    monkeypatch.setattr(intervals, "draw_interval", _full_interval)
    monkeypatch.setattr(operators, "fill", _boundary_values)


def _full_interval(rng: Rng, allowed: Interval, dtype: str) -> Interval:
    if dtype == "bool":
        return BOOLEAN
    if dtype.startswith(("float", "bfloat")):
        return allowed
    return Interval(np.ceil(allowed.low), np.floor(allowed.high))


def _boundary_values(type_: TensorType, range_: Interval, rng: Rng) -> Array:
    """All elements at one bound, or each at either, or anything between."""
    between = fill(type_, range_, rng)
    kind = rng.below(4)
    if kind == 3 or type_.dtype == "bfloat16":
        return between
    count = type_.elements
    ends = {
        0: [range_.low] * count,
        1: [range_.high] * count,
        2: [range_.high if rng.chance(0.5) else range_.low for _ in range(count)],
    }
    return np.asarray(np.array(ends[kind], np.float64).reshape(type_.lengths), between.dtype)
