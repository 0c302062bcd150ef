"""The figure by which the benchmark of signatures is judged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.benchmarks.signatures import adjusted_rand_index, agreeing

LABELS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=20)


@pytest.mark.parametrize(
    ("one", "other", "index"),
    [
        ([0, 0, 1, 1], [1, 1, 0, 0], 1.0),
        ([0, 0, 1, 2], [0, 0, 1, 1], 4 / 7),
        ([0, 0, 1, 1], [0, 0, 1, 2], 4 / 7),
        ([0, 0, 0, 0], [0, 1, 2, 3], 0.0),
        ([0, 0, 1, 1], [0, 1, 0, 1], -0.5),
        # A contingency table of rows 2 1 0, 1 2 1, 0 0 3: 5 pairs agree, 12 and 12 of 45 are together.
        ([0] * 3 + [1] * 4 + [2] * 3, [0, 0, 1, 0, 1, 1, 2, 2, 2, 2], (5 - 3.2) / (12 - 3.2)),
    ],
)
def test_against_values_worked_out_by_hand(one: list[int], other: list[int], index: float) -> None:
    assert adjusted_rand_index(one, other) == pytest.approx(index)


@given(LABELS, st.permutations(range(4)))
def test_which_partition_comes_first_and_what_labels_are_called_make_no_difference(
    pairs: list[tuple[int, int]], called: list[int]
) -> None:
    one, other = zip(*pairs, strict=True)
    index = adjusted_rand_index(one, other)
    assert adjusted_rand_index(other, one) == pytest.approx(index)
    assert adjusted_rand_index([called[label] for label in one], other) == pytest.approx(index)
    assert index <= 1 + 1e-9


def test_pairs_of_one_cause_that_agree() -> None:
    assert agreeing("aaab", "xxyz") == pytest.approx(1 / 3)
    assert agreeing("aabb", "xxxx") == 1.0
