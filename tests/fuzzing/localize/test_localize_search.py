"""The searches of localization, on causes that are known."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fuzzing.localize.search import Effect, Names, find_first, find_smallest_cure

PARTS = tuple(f"part {number}" for number in range(24))


@given(st.sets(st.sampled_from(PARTS), min_size=1, max_size=3))
def test_all_parts_of_a_cause_are_found_and_no_other(cause: set[str]) -> None:
    found = find_smallest_cure(PARTS, lambda names: Effect.CURED if cause <= set(names) else Effect.NONE)
    assert found is not None
    assert set(found) == cause


@given(st.sampled_from(PARTS), st.sets(st.sampled_from(PARTS), max_size=3))
def test_a_cause_is_found_though_much_cannot_be_left_out(cause: str, needed: set[str]) -> None:
    def effect(names: Names) -> Effect:
        if needed - {cause} & set(names):
            return Effect.OTHER
        return Effect.CURED if cause in names else Effect.NONE

    assert find_smallest_cure(PARTS, effect) == (cause,)


def test_where_leaving_out_everything_changes_nothing_that_is_all_that_is_asked() -> None:
    requested: list[Names] = []

    def effect(names: Names) -> Effect:
        requested.append(names)
        return Effect.NONE

    assert find_smallest_cure(PARTS, effect) is None
    assert requested == [PARTS]


def test_without_parts_nothing_is_asked() -> None:
    assert find_smallest_cure((), lambda names: Effect.CURED) is None


def test_a_single_cause_costs_few_runs() -> None:
    requested: list[Names] = []

    def effect(names: Names) -> Effect:
        requested.append(names)
        return Effect.CURED if PARTS[13] in names else Effect.NONE

    assert find_smallest_cure(PARTS, effect) == (PARTS[13],)
    assert len(requested) <= 1 + 5 + 1  # all, a question for each bit of 24, the proof of the last half


@given(st.integers(0, 40), st.integers(0, 40))
def test_the_first_wrong_place_is_found(count: int, first: int) -> None:
    assert find_first(count, lambda place: place >= first) == min(first, count)
