from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.graph import Attribute, TensorType
from fuzzing.graph.attribute_domains import Axis, Choice, Computed, IntRange, IntTuple, Permutation
from fuzzing.graph.operator_spec import Domain, GraphLimits, NodeContext, OperatorSpec
from fuzzing.rng import Rng

OPERATOR = OperatorSpec("Some", 13)


def place(shape: tuple[int, ...], seed: int = 0) -> NodeContext:
    """The place of a node whose one input has this shape."""
    context = NodeContext(OPERATOR, 21, GraphLimits(), Rng(seed), 1)
    context.types[0] = TensorType("float32", shape)
    context.unpack_primary()
    return context


DOMAINS: list[Domain] = [
    Choice("a", "b", 3),
    IntRange(-2, lambda context: context.rank),
    Axis(),
    Axis(end=1),
    Axis(negative=1.0),
    Permutation(),
    IntTuple(lambda context: [(0, dim) for dim in context.dims(0)]),
    Computed(lambda context: context.rank, lambda value, context: value == context.rank),
]


@pytest.mark.parametrize("domain", DOMAINS)
@given(st.integers(0, 1 << 53), st.lists(st.integers(1, 5), max_size=5))
def test_what_is_drawn_is_admitted(domain: Domain, seed: int, shape: list[int]) -> None:
    context = place(tuple(shape), seed)
    for _ in range(10):
        assert domain.contains(domain.draw(context), context)


@pytest.mark.parametrize(
    ("domain", "values"),
    [
        (Choice("a", 3), ["b", 4, ("a",)]),
        (IntRange(0, 2), [-1, 3, 1.0]),
        (Axis(), [-4, 3, 0.0]),
        (Axis(end=1), [-4, 4]),
        (Permutation(), [(0, 1), (0, 1, 1), (0, 1, 3), 0]),
        (IntTuple(lambda context: [(0, 1), (2, 3)]), [(0,), (0, 2, 2), (0, 4), (0.0, 2), 0]),
        (Computed(lambda context: 1, lambda value, context: value == 1), [2]),
    ],
)
def test_what_lies_outside_is_not_admitted(domain: Domain, values: list[Attribute]) -> None:
    context = place((2, 3, 4))
    assert [value for value in values if domain.contains(value, context)] == []


def test_each_value_is_reached() -> None:
    context = place((2, 3, 4))
    assert {Choice(1, 2).draw(context) for _ in range(60)} == {1, 2}
    assert {IntRange(1, 3).draw(context) for _ in range(60)} == {1, 2, 3}
    assert {Axis().draw(context) for _ in range(600)} == {-3, -2, -1, 0, 1, 2}
    assert {Axis(end=1, negative=0).draw(context) for _ in range(200)} == {0, 1, 2, 3}
    assert len({Permutation().draw(context) for _ in range(200)}) == 6


def test_the_axis_of_a_scalar_is_zero() -> None:
    assert Axis().draw(place(())) == 0
    assert Axis().contains(0, place(()))
