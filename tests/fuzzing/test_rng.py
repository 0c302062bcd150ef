from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.rng import Rng, derive_seed

SEEDS = st.integers(0, (1 << 64) - 1)


def test_a_seed_gives_the_same_choices_for_ever() -> None:
    rng = Rng(7)
    assert [rng.below(100) for _ in range(6)] == [32, 15, 65, 7, 53, 36]
    assert rng.permutation(5) == [1, 3, 4, 2, 0]
    assert rng.seed() == 629201719160924
    assert derive_seed(7, "model", 3) == 13285621605859172736


@given(SEEDS, st.integers(-50, 50), st.integers(0, 50))
def test_choices_lie_within_their_bounds(seed: int, low: int, span: int) -> None:
    rng = Rng(seed)
    for _ in range(20):
        assert low <= rng.between(low, low + span) <= low + span
        assert 0 <= rng.below(span + 1) <= span
        assert 0 <= rng.random() < 1
        assert 0 <= rng.seed() < 1 << 53
        assert rng.choice(range(low, low + span + 1)) in range(low, low + span + 1)


@given(SEEDS, st.integers(0, 12))
def test_permutations_hold_each_number_once(seed: int, count: int) -> None:
    assert sorted(Rng(seed).permutation(count)) == list(range(count))


@given(SEEDS, st.integers(1, 12))
def test_subsets_are_never_empty_and_hold_no_number_twice(seed: int, count: int) -> None:
    found = Rng(seed).subset(count)
    assert 1 <= len(found) == len(set(found)) <= count
    assert set(found) <= set(range(count))


@given(SEEDS)
def test_certainties_are_certain(seed: int) -> None:
    rng = Rng(seed)
    assert rng.chance(1.0)
    assert not rng.chance(0.0)


def test_every_permutation_is_alike_likely() -> None:
    rng = Rng(1)
    counts = Counter(tuple(rng.permutation(3)) for _ in range(6000))
    assert len(counts) == 6
    # The standard deviation of each count is 29.
    assert all(abs(count - 1000) < 5 * 29 for count in counts.values())


def test_bounds_are_reached() -> None:
    rng = Rng(2)
    assert {rng.between(3, 5) for _ in range(100)} == {3, 4, 5}


@given(SEEDS, st.integers(0, 1000))
def test_parts_have_seeds_of_their_own(seed: int, part: int) -> None:
    found = {
        derive_seed(seed),
        derive_seed(seed, part),
        derive_seed(seed, part, 0),
        derive_seed(seed, part + 1),
        derive_seed(seed, "a"),
    }
    assert len(found) == 5
    assert all(0 <= one < 1 << 64 for one in found)
    assert derive_seed(seed, part) == derive_seed(seed, part)


def test_nothing_can_be_chosen_from_nothing() -> None:
    with pytest.raises(IndexError):
        Rng(0).choice([])
