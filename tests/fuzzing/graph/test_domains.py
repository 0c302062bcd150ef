from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.draws import Draws
from fuzzing.graph import Attribute, TensorType
from fuzzing.graph.domains import Axis, Between, Choice, Each, Made, Permutation
from fuzzing.graph.operator import Domain, Operator
from fuzzing.graph.site import Limits, Site

OPERATOR = Operator("Some", 13)


def place(shape: tuple[int, ...], seed: int = 0) -> Site:
    """The place of a node whose one input has this shape."""
    site = Site(OPERATOR, 21, Limits(), Draws(seed), 1)
    site.types[0] = TensorType("float32", shape)
    site.led()
    return site


DOMAINS: list[Domain] = [
    Choice("a", "b", 3),
    Between(-2, lambda site: site.rank),
    Axis(),
    Axis(end=1),
    Axis(negative=1.0),
    Permutation(),
    Each(lambda site: [(0, dim) for dim in site.dims(0)]),
    Made(lambda site: site.rank, lambda value, site: value == site.rank),
]


@pytest.mark.parametrize("domain", DOMAINS)
@given(st.integers(0, 1 << 53), st.lists(st.integers(1, 5), max_size=5))
def test_what_is_drawn_is_admitted(domain: Domain, seed: int, shape: list[int]) -> None:
    site = place(tuple(shape), seed)
    for _ in range(10):
        assert domain.admits(domain.draw(site), site)


@pytest.mark.parametrize(
    ("domain", "values"),
    [
        (Choice("a", 3), ["b", 4, ("a",)]),
        (Between(0, 2), [-1, 3, 1.0]),
        (Axis(), [-4, 3, 0.0]),
        (Axis(end=1), [-4, 4]),
        (Permutation(), [(0, 1), (0, 1, 1), (0, 1, 3), 0]),
        (Each(lambda site: [(0, 1), (2, 3)]), [(0,), (0, 2, 2), (0, 4), (0.0, 2), 0]),
        (Made(lambda site: 1, lambda value, site: value == 1), [2]),
    ],
)
def test_what_lies_outside_is_not_admitted(domain: Domain, values: list[Attribute]) -> None:
    site = place((2, 3, 4))
    assert [value for value in values if domain.admits(value, site)] == []


def test_each_value_is_reached() -> None:
    site = place((2, 3, 4))
    assert {Choice(1, 2).draw(site) for _ in range(60)} == {1, 2}
    assert {Between(1, 3).draw(site) for _ in range(60)} == {1, 2, 3}
    assert {Axis().draw(site) for _ in range(600)} == {-3, -2, -1, 0, 1, 2}
    assert {Axis(end=1, negative=0).draw(site) for _ in range(200)} == {0, 1, 2, 3}
    assert len({Permutation().draw(site) for _ in range(200)}) == 6


def test_the_axis_of_a_scalar_is_zero() -> None:
    assert Axis().draw(place(())) == 0
    assert Axis().admits(0, place(()))
