from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.draws import Draws
from fuzzing.graph import TensorType, intervals
from fuzzing.graph.intervals import MODEST, WHOLE, Interval
from fuzzing.graph.types import ANY, FLOATS, INTEGERS

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
    assert both.holds(a)
    assert both.holds(b)
    common = intervals.cut(a, b)
    if common.low <= common.high:
        assert a.holds(common)
        assert b.holds(common)


@given(inside())
def test_widening_leaves_nothing_out(given_: tuple[Interval, float]) -> None:
    assert intervals.widen(given_[0]).holds(given_[0])


@pytest.mark.parametrize("dtype", ANY)
def test_what_a_type_may_carry_is_what_it_holds(dtype: str) -> None:
    whole, modest = WHOLE[dtype], MODEST[dtype]
    assert whole.holds(modest)
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        assert info.min <= whole.low
        assert whole.high <= info.max
        assert int(whole.low) == whole.low  # exact in float64, in which recipes draw
        assert modest.largest**2 <= whole.high
    elif dtype in ("float16", "float32"):
        # A sum of ten in any order is finite.
        assert whole.largest * 10 < float(np.finfo(dtype).max)
        assert modest.largest**2 <= whole.high


@given(st.integers(0, 1 << 53), st.sampled_from(ANY), st.data())
def test_fresh_bounds_lie_in_what_is_allowed_and_hold_a_number(
    seed: int, dtype: str, data: st.DataObject
) -> None:
    whole = WHOLE[dtype]
    numbers = st.integers if dtype in INTEGERS else st.floats
    low = (
        data.draw(numbers(int(max(whole.low, -1e6)), int(min(whole.high, 1e6)) - 3)) if dtype != "bool" else 0
    )
    allowed = Interval(low, low + 3) if dtype != "bool" else intervals.BOOLEAN
    found = intervals.fresh(Draws(seed), allowed, dtype)
    assert allowed.holds(found)
    assert found.low <= found.high
    if dtype not in FLOATS:
        assert float(found.low).is_integer()
        assert float(found.high).is_integer()


def test_a_fixed_domain_is_cut_to_what_the_type_carries() -> None:
    domain = intervals.within(-1e30, 1e30)
    assert domain(TensorType("float16", ())) == WHOLE["float16"]
    assert domain(TensorType("float32", ())) == Interval(-1e30, 1e30)
    assert intervals.whole(TensorType("int8", (2,))) == Interval(-128, 127)
    assert intervals.modest(TensorType("int8", (2,))) == Interval(-11, 11)
