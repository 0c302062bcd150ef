"""Operator-level coverage: the paper's worked example, and its laws."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.coverage.operator_level import (
    METRICS,
    DegreeBounds,
    OperatorLevelCoverage,
    OperatorUse,
)

OUT = frozenset({0, 1, 2})
CORPUS = {
    "Conv2d": DegreeBounds(frozenset({1}), OUT),
    "Relu": DegreeBounds(frozenset({1}), OUT),
    "Add": DegreeBounds(frozenset({2}), OUT),
}
#: Three networks like the paper's: a Conv2d twice into one Add; Conv2d, Add, Relu, Add; an Add.
NETWORKS = (
    (OperatorUse("Conv2d", 1, ("Add", "Add"), "3x3"), OperatorUse("Add", 2, (), "8x8")),
    (
        OperatorUse("Conv2d", 1, ("Add",), "5x5"),
        OperatorUse("Add", 2, ("Relu",), "6x6"),
        OperatorUse("Relu", 1, ("Add",), "6x6"),
        OperatorUse("Add", 2, (), "6x6"),
    ),
    (OperatorUse("Add", 2, (), "4x4"),),
)
#: The table of the paper, in percent.
TABLE = {
    "Conv2d": (100, 100, 66.7, 33.3, 20, 64),
    "Relu": (100, 100, 33.3, 33.3, 10, 55.3),
    "Add": (100, 100, 66.7, 33.3, 30, 66),
}


def worked_example() -> OperatorLevelCoverage:
    coverage = OperatorLevelCoverage(CORPUS, max_spc=10)
    for network in NETWORKS:
        coverage.add(network)
    return coverage


@pytest.mark.parametrize("operator", TABLE)
def test_the_worked_example_of_the_paper(operator: str) -> None:
    found = worked_example().of_operator(operator)
    assert [round(100 * found[name], 1) for name in (*METRICS, "OLC")] == list(TABLE[operator])


def test_the_worked_example_as_a_set() -> None:
    found = worked_example().of_set()
    percent = [round(100 * found[name], 1) for name in (*METRICS, "OLC")]
    assert percent == [100, 100, 55.6, 33.3, 20, 61.8]


def test_a_weight_of_zero_leaves_a_metric_out() -> None:
    chains = OperatorLevelCoverage(CORPUS, max_spc=10, weights={"ODC": 0})
    chains.add([OperatorUse("Relu", 1, ("Relu",), "a")])
    assert chains.of_operator("Relu")["OLC"] == pytest.approx((1 + 1 + 1 / 3 + 1 / 10) / 4)


uses = st.builds(
    OperatorUse,
    st.sampled_from([*CORPUS, "Foreign"]),
    st.integers(0, 3),
    st.lists(st.sampled_from([*CORPUS, "Foreign"]), max_size=4).map(tuple),
    st.integers(0, 20),
)


@given(st.lists(uses, max_size=30))
def test_what_is_new_is_what_raises_coverage(models: list[OperatorUse]) -> None:
    coverage = OperatorLevelCoverage(CORPUS, max_spc=10)
    for use in models:
        before = coverage.of_set()
        gain = coverage.add([use])
        after = coverage.of_set()
        assert all(0 <= after[name] <= 1 and after[name] >= before[name] for name in after)
        assert (gain > 0) == (after != before)
        assert all(coverage.share(name) == coverage.of_operator(name)["OLC"] for name in CORPUS)
        assert coverage.add([use]) == 0


def test_novelty_falls_while_vectors_repeat() -> None:
    coverage = OperatorLevelCoverage(CORPUS, max_spc=10)
    assert coverage.novelty("Relu") == 1
    for vector in "aaaaab":
        coverage.add([OperatorUse("Relu", 1, (), vector)])
    repeated = 0.9**4
    assert coverage.novelty("Relu") == pytest.approx(repeated + (1 - repeated) * 0.1)
