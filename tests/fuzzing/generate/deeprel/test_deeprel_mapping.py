"""Assigning parameters to parameters."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.generate.deeprel.api_inventory import list_apis
from fuzzing.generate.deeprel.parameter_mapping import assign, edit_distance, map_parameters

Scores = list[list[float]]


def by_trying_all(scores: Scores) -> float:
    """The greatest sum of an assignment of min(rows, columns) pairs."""
    rows, columns = len(scores), len(scores[0])
    if rows > columns:
        return by_trying_all([list(column) for column in zip(*scores, strict=True)])
    return max(
        sum(scores[row][way[row]] for row in range(rows)) for way in permutations(range(columns), rows)
    )


@st.composite
def tables(draw: st.DrawFn) -> Scores:
    rows, columns = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    score = st.one_of(st.just(-1e6), st.integers(0, 12).map(lambda quarter: quarter / 4))
    return draw(st.lists(st.lists(score, min_size=columns, max_size=columns), min_size=rows, max_size=rows))


@given(tables())
def test_the_assignment_is_the_best_there_is(scores: Scores) -> None:
    found = assign(scores)
    assert len(found) == min(len(scores), len(scores[0]))
    assert len({row for row, _ in found}) == len({column for _, column in found}) == len(found)
    assert sum(scores[row][column] for row, column in found) == pytest.approx(by_trying_all(scores))


def test_nothing_is_assigned_where_one_side_is_empty() -> None:
    assert assign([]) == []
    assert assign([[], []]) == []


TEXT = st.text("abc", max_size=6)


@given(TEXT, TEXT, TEXT)
def test_the_edit_distance_is_a_metric(one: str, other: str, third: str) -> None:
    assert (edit_distance(one, other) == 0) == (one == other)
    assert edit_distance(one, other) == edit_distance(other, one)
    assert edit_distance(one, third) <= edit_distance(one, other) + edit_distance(other, third)
    assert abs(len(one) - len(other)) <= edit_distance(one, other) <= max(len(one), len(other))


def test_edit_distances_known_by_heart() -> None:
    assert edit_distance("kitten", "sitting") == 3
    assert edit_distance("dim", "dims") == 1


def pairs(source: str, target: str) -> list[tuple[tuple[str, str], ...] | None]:
    """The mapping from the source's first signature to each of the target's."""
    one = list_apis()[source].signatures[0]
    found = [map_parameters(one, other) for other in list_apis()[target].signatures]
    return [each.pairs if each else None for each in found]


@pytest.mark.compiler_torch_eager
def test_parameters_are_matched_by_name_type_and_place() -> None:
    found = pairs("torch.amax", "torch.max")
    assert (("input", "input"), ("dim", "dim"), ("keepdim", "keepdim")) in found
    assert (("input", "input"),) in found
    assert None in found  # max(input, other): amax has nothing that could be `other`


@pytest.mark.compiler_torch_eager
def test_what_must_be_given_is_never_left_over() -> None:
    assert pairs("torch.nn.ReLU6", "torch.nn.AdaptiveAvgPool2d") == [None]
    assert pairs("torch.nn.AdaptiveAvgPool2d", "torch.nn.ReLU6") == [None]
    assert pairs("torch.nn.ReLU6", "torch.nn.Hardtanh") == [(("inplace", "inplace"),)]


@pytest.mark.compiler_torch_eager
def test_a_method_takes_the_tensor_as_itself() -> None:
    assert pairs("torch.amax", "torch.Tensor.amax") == [
        (("input", "self"), ("dim", "dim"), ("keepdim", "keepdim"))
    ]
