from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.reduce.engine import (
    CLEAN,
    OTHER,
    SAME,
    Attempt,
    Budget,
    Pass,
    ReductionSpec,
    Step,
    ddmin,
    find_single,
    reduce,
)
from fuzzing.reduce.journal import Journal

Numbers = tuple[int, ...]


def _without(best: Numbers, places: Sequence[int]) -> Numbers:
    return tuple(x for place, x in enumerate(best) if place not in set(places))


def _cut(attempt: Attempt[Numbers]) -> None:
    ddmin(attempt, lambda best: range(len(best)), _without)


def _halve(attempt: Attempt[Numbers]) -> None:
    for place in range(len(attempt.best)):
        while attempt.any(_smaller(attempt.best, place)):
            pass


def _smaller(best: Numbers, place: int) -> list[Numbers]:
    x = best[place]
    return [(*best[:place], new, *best[place + 1 :]) for new in (0, x // 2, x - 1) if 0 <= new < x]


SPEC = ReductionSpec[Numbers](
    size=lambda numbers: (len(numbers), sum(numbers)),
    key=repr,
    passes=(Pass("cut", _cut), Pass("halve", _halve)),
)


class CountingClassifier:
    def __init__(self, shows: Callable[[Numbers], str]) -> None:
        self.shows = shows
        self.asked: list[Numbers] = []
        self.widest = 0

    def __call__(self, candidates: Sequence[Numbers]) -> list[str]:
        self.asked.extend(candidates)
        self.widest = max(self.widest, len(candidates))
        return [self.shows(candidate) for candidate in candidates]


def _holding(*wanted: int) -> Callable[[Numbers], str]:
    return lambda numbers: SAME if set(wanted) <= set(numbers) else CLEAN


def test_two_culprits_among_fifty_are_found_in_a_few_dozen_runs() -> None:
    classify = CountingClassifier(_holding(13, 37))
    reduced = reduce(tuple(range(50)), SPEC, classify)
    assert reduced.best == (13, 37)
    assert reduced.minimal
    assert reduced.runs == len(classify.asked) <= 40


@given(st.lists(st.integers(0, 30), min_size=1, max_size=25), st.data(), st.integers(1, 4))
def test_what_is_left_is_minimal_under_every_pass(
    numbers: list[int], data: st.DataObject, width: int
) -> None:
    wanted = data.draw(st.lists(st.sampled_from(numbers), min_size=1, max_size=3, unique=True))
    shows = _holding(*wanted)
    reduced = reduce(tuple(numbers), SPEC, CountingClassifier(shows), width=width)
    assert shows(reduced.best) == SAME
    assert reduced.minimal
    for place in range(len(reduced.best)):
        assert shows(_without(reduced.best, [place])) == CLEAN
        assert all(shows(smaller) == CLEAN for smaller in _smaller(reduced.best, place))


@given(st.lists(st.integers(0, 50), min_size=1, max_size=30), st.integers(2, 5))
def test_judging_several_at_once_leads_to_the_same_end(numbers: list[int], width: int) -> None:
    def shows(candidate: Numbers) -> str:
        return SAME if sum(candidate) >= min(20, sum(numbers)) else CLEAN

    one = reduce(tuple(numbers), SPEC, CountingClassifier(shows))
    many = reduce(tuple(numbers), SPEC, CountingClassifier(shows), width=width)
    assert one.best == many.best
    assert [(step.by, step.size) for step in one.steps] == [(step.by, step.size) for step in many.steps]


def test_no_more_are_judged_at_once_than_asked_for() -> None:
    classify = CountingClassifier(_holding(*range(40)))
    reduce(tuple(range(40)), SPEC, classify, width=4)
    assert classify.widest == 4


def test_nothing_is_judged_twice() -> None:
    classify = CountingClassifier(_holding(7, 9, 11))
    reduce(tuple(range(30)), SPEC, classify)
    assert len(classify.asked) == len(set(classify.asked))


@pytest.mark.parametrize("runs", [0, 1, 5, 17])
def test_a_spent_budget_ends_with_the_best_so_far(runs: int) -> None:
    classify = CountingClassifier(_holding(13, 37))
    reduced = reduce(tuple(range(50)), SPEC, classify, budget=Budget(runs=runs))
    assert len(classify.asked) == reduced.runs <= runs
    assert not reduced.minimal
    assert {13, 37} <= set(reduced.best)


def test_time_is_a_budget_too() -> None:
    reduced = reduce(tuple(range(50)), SPEC, CountingClassifier(_holding(1)), budget=Budget(seconds=-1))
    assert (reduced.runs, reduced.minimal, len(reduced.best)) == (0, False, 50)


def test_a_reduction_that_was_cut_off_goes_on_out_of_its_journal(tmp_path: Path) -> None:
    whole = CountingClassifier(_holding(13, 37))
    undisturbed = reduce(tuple(range(50)), SPEC, whole)
    path = tmp_path / "journal"
    reduce(
        tuple(range(50)),
        SPEC,
        CountingClassifier(_holding(13, 37)),
        budget=Budget(runs=9),
        journal=Journal(path),
    )
    path.write_text(path.read_text() + '["(1, 2', encoding="utf-8")  # as kill -9 may leave it
    rest = CountingClassifier(_holding(13, 37))
    resumed = reduce(tuple(range(50)), SPEC, rest, journal=Journal(path))
    assert resumed.best == undisturbed.best
    assert resumed.replayed == 9
    assert len(rest.asked) == len(whole.asked) - 9


def test_other_bugs_met_on_the_way_are_kept_smallest_first() -> None:
    def shows(numbers: Numbers) -> str:
        if {13, 37} <= set(numbers):
            return SAME
        return OTHER if 5 in numbers else CLEAN

    reduced = reduce(tuple(range(50)), SPEC, CountingClassifier(shows))
    assert reduced.best == (13, 37)
    assert reduced.others
    assert all(5 in numbers for numbers in reduced.others)
    assert [SPEC.size(x) for x in reduced.others] == sorted(SPEC.size(x) for x in reduced.others)


def test_candidates_that_are_no_smaller_are_not_run() -> None:
    def grow(attempt: Attempt[Numbers]) -> None:
        assert not attempt.any([(*attempt.best, 1), attempt.best])

    classify = CountingClassifier(_holding(1))
    format_ = ReductionSpec[Numbers](SPEC.size, SPEC.key, (Pass("grow", grow),))
    reduced = reduce((1, 2), format_, classify)
    assert (reduced.best, reduced.runs, reduced.minimal) == ((1, 2), 0, True)


def test_progress_is_told_step_by_step() -> None:
    reported: list[Step] = []
    reduced = reduce(tuple(range(20)), SPEC, CountingClassifier(_holding(4)), progress=reported.append)
    assert tuple(reported) == reduced.steps
    assert [step.size for step in reported] == sorted((step.size for step in reported), reverse=True)
    assert reported[-1].by == "halve" or reported[-1].size == (1, 4)


def test_an_error_of_the_judge_is_not_swallowed() -> None:
    def broken(candidates: Sequence[Numbers]) -> list[str]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        reduce((1, 2), SPEC, broken)


def _seek(attempt: Attempt[Numbers]) -> None:
    find_single(attempt, lambda best: best, lambda _, units: tuple(units))


@given(st.integers(0, 63))
def test_a_single_cause_costs_one_run_per_bit(cause: int) -> None:
    found = reduce(
        tuple(range(64)),
        ReductionSpec(SPEC.size, repr, (Pass("seek", _seek),)),
        CountingClassifier(_holding(cause)),
    )
    assert found.best == (cause,)
    # Six bits, and one proof; a second round asks nothing that is not known.
    assert found.runs <= 7


def test_two_causes_apart_are_left_to_cutting() -> None:
    passes = (Pass("seek", _seek), Pass("cut", _cut))
    classify = CountingClassifier(_holding(1, 62))
    found = reduce(tuple(range(64)), ReductionSpec(SPEC.size, repr, passes), classify)
    assert found.best == (1, 62)
    assert found.runs_by_pass["seek"] <= 8
    assert sum(found.runs_by_pass.values()) == len(classify.asked)
