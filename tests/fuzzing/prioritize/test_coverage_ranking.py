from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.errors import UsageError
from fuzzing.prioritize.strategies import Context
from tests.fuzzing.prioritize.prioritize_kit import instance, order

LINES = st.frozensets(st.tuples(st.sampled_from(["a.py", "b.py"]), st.integers(1, 6)), max_size=7)


def _order(strategy: str, covered: list[frozenset[tuple[str, int]]], **options: str) -> list[int]:
    instances = [instance(number) for number in range(len(covered))]
    coverage = {one.id: lines for one, lines in zip(instances, covered, strict=True)}
    return order(strategy, instances, Context(coverage=coverage, options=options))


def _lines(*numbers: int, file: str = "a.py") -> frozenset[tuple[str, int]]:
    return frozenset((file, number) for number in numbers)


@given(covered=st.lists(LINES, max_size=10))
def test_total_goes_by_how_much_is_covered(covered: list[frozenset[tuple[str, int]]]) -> None:
    found = _order("coverage-total", covered)
    assert [(-len(covered[at]), at) for at in found] == sorted((-len(s), at) for at, s in enumerate(covered))


@given(covered=st.lists(LINES, max_size=10))
def test_additional_is_greedy(covered: list[frozenset[tuple[str, int]]]) -> None:
    left, seen, expected = list(range(len(covered))), set[tuple[str, int]](), []
    while left:
        best = min(left, key=lambda at: (-len(covered[at] - seen), at))
        if seen and not covered[best] - seen:
            seen = set()
            continue
        expected.append(best)
        seen |= covered[best]
        left.remove(best)
    assert _order("coverage-additional", covered) == expected


def test_the_released_variant_is_computed_once_in_the_sources_order() -> None:
    covered = [_lines(1, 2, 3), _lines(1, 2), _lines(1, file="b.py"), _lines(1, 2, 3, 4)]
    # figures 3, 3, 1, 4; increments 3, 0, -2, 3
    assert _order("coverage-additional", covered, **{"coverage.additional": "released"}) == [0, 3, 1, 2]


def test_a_case_without_coverage_covers_nothing() -> None:
    instances = [instance(1), instance(2)]
    assert order("coverage-total", instances, Context(coverage={instances[1].id: _lines(1)})) == [1, 0]


@pytest.mark.parametrize("strategy", ["coverage-total", "coverage-additional"])
def test_without_coverage_it_is_said_how_to_measure_it(strategy: str) -> None:
    with pytest.raises(UsageError, match="coverage_measurement"):
        order(strategy, [instance(1)])
    with pytest.raises(UsageError, match="greedy or released"):
        order("coverage-additional", [], Context(coverage={}, options={"coverage.additional": "x"}))
