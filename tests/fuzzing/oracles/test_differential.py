from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest

from fuzzing.cases import Sequence, Tensor
from fuzzing.oracles.differential import Row, differential
from fuzzing.oracles.output_comparison import Outputs


def of(*items: float, name: str = "y") -> Outputs:
    return ((name, Tensor.of(np.array(items, np.float32))),)


def table(reference: Outputs, float64: Outputs | None = None, **given: Outputs | None) -> dict[str, Row]:
    return differential(given, reference, float64)


def test_who_deviates_from_all_others_is_alone() -> None:
    rows = table(of(1, 2), a=of(1, 2), b=of(1, 2.5), c=of(1, 2.000001))
    assert {label: (row.group, row.outlier) for label, row in rows.items()} == {
        "a": (0, False),
        "b": (1, True),
        "c": (0, False),
    }
    assert rows["b"].to_reference == 0.5


def test_the_library_counts_as_one_of_them() -> None:
    assert table(of(1), a=of(1), b=of(2))["b"].outlier
    rows = table(of(1), a=of(2), b=of(2))
    assert [(row.group, row.outlier) for row in rows.values()] == [(1, False), (1, False)]


@pytest.mark.parametrize("order", list(permutations(["a", "b", "c"])))
def test_three_opinions_leave_nobody_alone(order: tuple[str, ...]) -> None:
    values = {"a": of(1), "b": of(2), "c": of(3)}
    rows = table(of(1), **{label: values[label] for label in order})
    assert not any(row.outlier for row in rows.values())
    assert len({row.group for row in rows.values()}) == 3


def test_one_against_the_library_alone_is_no_majority() -> None:
    assert table(of(1), a=of(2))["a"] == Row(1.0, None, 1, False)


def test_who_gives_nothing_has_no_group() -> None:
    rows = table(of(1), a=None, b=of(1), c=of(5))
    assert rows["a"] == Row(None, None, None, False)
    assert rows["c"].outlier


def test_distances_are_to_reference_and_to_float64() -> None:
    exact = (("y", Tensor.of(np.array([1.25, 2.0]))),)
    row = table(of(1, 2), exact, a=of(1.5, 2))["a"]
    assert (row.to_reference, row.to_float64) == (0.5, 0.25)


def test_where_nothing_can_be_measured_there_is_no_distance() -> None:
    nan = table(of(1), a=of(math.nan), b=of(math.nan))
    assert nan["a"].to_reference is None
    assert nan["a"].group == nan["b"].group
    assert table(of(math.nan), a=of(math.nan))["a"] == Row(0.0, None, 0, False)
    assert table(of(1), a=of(1, 2))["a"].to_reference is None
    assert table(of(1), a=())["a"] == Row(None, None, 1, False)


def test_renamed_outputs_and_sequences_are_likened() -> None:
    assert table(of(1), a=of(1, name="y:0"), b=of(1))["a"].group == 0
    items = (("s", Sequence((Tensor.of(np.array([1.0])), Tensor.of(np.array([2.0]))))),)
    other = (("s", Sequence((Tensor.of(np.array([1.0])), Tensor.of(np.array([5.0]))))),)
    assert table(items, a=other)["a"].to_reference == 3.0


def test_no_backends_make_an_empty_table() -> None:
    assert table(of(1)) == {}
