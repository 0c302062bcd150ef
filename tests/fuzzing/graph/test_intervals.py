from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.graph import TensorType, intervals
from fuzzing.graph.intervals import FULL_RANGES, MODERATE_RANGES, Interval
from fuzzing.graph.types import ANY, FLOATS, INTEGERS
from fuzzing.rng import Rng

NUMBERS = st.floats(-1e6, 1e6)


@st.composite
def inside(draw: st.DrawFn) -> tuple[Interval, float]:
    """An interval and a number in it."""
    low, number, high = sorted([draw(NUMBERS), draw(NUMBERS), draw(NUMBERS)])
    return Interval(low, high), number


BINARY: list[tuple[Callable[[Interval, Interval], Interval], Callable[[float, float], float]]] = [
    (intervals.add, lambda a, b: a + b),
    (intervals.subtract, lambda a, b: a - b),
    (intervals.multiply, lambda a, b: a * b),
]


@pytest.mark.parametrize(("of_intervals", "of_numbers"), BINARY)
@given(inside(), inside())
def test_arithmetic_is_sound(
    of_intervals: Callable[[Interval, Interval], Interval],
    of_numbers: Callable[[float, float], float],
    one: tuple[Interval, float],
    other: tuple[Interval, float],
) -> None:
    found = of_intervals(one[0], other[0])
    assert found.low <= of_numbers(one[1], other[1]) <= found.high


@given(inside(), NUMBERS)
def test_scaling_and_magnitude_are_sound(given_: tuple[Interval, float], factor: float) -> None:
    interval, number = given_
    scaled, size = intervals.scale(interval, factor), intervals.magnitude(interval)
    assert scaled.low <= number * factor <= scaled.high
    assert size.low <= abs(number) <= size.high
    assert interval.largest == size.high


@given(inside(), inside())
def test_a_hull_holds_all_and_a_cut_lies_in_both(
    one: tuple[Interval, float], other: tuple[Interval, float]
) -> None:
    a, b = one[0], other[0]
    both = intervals.hull([a, b])
    assert both.contains(a)
    assert both.contains(b)
    common = intervals.intersect(a, b)
    if common.low <= common.high:
        assert a.contains(common)
        assert b.contains(common)


@given(inside())
def test_widening_leaves_nothing_out(given_: tuple[Interval, float]) -> None:
    assert intervals.widen(given_[0]).contains(given_[0])


@pytest.mark.parametrize("dtype", ANY)
def test_what_a_type_may_carry_is_what_it_holds(dtype: str) -> None:
    full_range, moderate_range = FULL_RANGES[dtype], MODERATE_RANGES[dtype]
    assert full_range.contains(moderate_range)
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        assert info.min <= full_range.low
        assert full_range.high <= info.max
        assert int(full_range.low) == full_range.low  # exact in float64, in which recipes draw
        assert moderate_range.largest**2 <= full_range.high
    elif dtype in ("float16", "float32"):
        # A sum of ten in any order is finite.
        assert full_range.largest * 10 < float(np.finfo(dtype).max)
        assert moderate_range.largest**2 <= full_range.high


@given(st.integers(0, 1 << 53), st.sampled_from(ANY), st.data())
def test_fresh_bounds_lie_in_what_is_allowed_and_hold_a_number(
    seed: int, dtype: str, data: st.DataObject
) -> None:
    full_range = FULL_RANGES[dtype]
    numbers = st.integers if dtype in INTEGERS else st.floats
    low = (
        data.draw(numbers(int(max(full_range.low, -1e6)), int(min(full_range.high, 1e6)) - 3))
        if dtype != "bool"
        else 0
    )
    allowed = Interval(low, low + 3) if dtype != "bool" else intervals.BOOLEAN
    found = intervals.draw_interval(Rng(seed), allowed, dtype)
    assert allowed.contains(found)
    assert found.low <= found.high
    if dtype not in FLOATS:
        assert float(found.low).is_integer()
        assert float(found.high).is_integer()


def test_a_fixed_domain_is_cut_to_what_the_type_carries() -> None:
    domain = intervals.within(-1e30, 1e30)
    assert domain(TensorType("float16", ())) == FULL_RANGES["float16"]
    assert domain(TensorType("float32", ())) == Interval(-1e30, 1e30)
    assert intervals.full_range(TensorType("int8", (2,))) == Interval(-128, 127)
    assert intervals.moderate_range(TensorType("int8", (2,))) == Interval(-11, 11)
