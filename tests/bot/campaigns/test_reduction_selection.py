"""Which failing cases are made small, and in which order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.campaigns.classify.classification import NO_BASE
from bot.campaigns.reduce.reduction_selection import select_for_reduction
from bot.store.models import Classification, Finding

SIZES = {"a": 30, "b": 10, "c": 20, "d": 5, "e": 40}


def finding(case: str, classification: Classification, signature: str, reason: str = "") -> Finding:
    return Finding(
        campaign_id=1, case_id=case, classification=classification.value, signature=signature, reason=reason
    )


def chosen(*rows: Finding) -> list[str]:
    return [one.case_id for one in select_for_reduction(rows, SIZES.__getitem__)]


def test_each_kind_of_what_is_new_comes_before_more_of_it_and_the_smallest_first() -> None:
    rows = [
        finding(case, Classification.REGRESSION, kind) for case, kind in zip("abcde", "xxxyy", strict=True)
    ]
    assert chosen(*rows) == ["d", "b", "c", "e", "a"], "the third x is last, though e is larger"


def test_of_what_was_broken_one_of_a_kind_is_enough() -> None:
    rows = [finding(case, Classification.ALREADY_BROKEN, "x") for case in "abc"]
    assert chosen(*rows, finding("e", Classification.REGRESSION, "y")) == ["e", "b"]


def test_what_is_not_sure_is_left_alone() -> None:
    unsure = [
        Classification.FLAKY,
        Classification.FLAKY_PROGRAM,
        Classification.INFRASTRUCTURE,
        Classification.FIXED,
    ]
    assert (
        chosen(
            *(finding("a", classification, "x") for classification in (*unsure, Classification.SUPPORT_LOST))
        )
        == []
    )
    assert chosen(finding("a", Classification.INCONCLUSIVE, "x", "base was not run")) == []
    assert chosen(finding("a", Classification.INCONCLUSIVE, "x", NO_BASE)) == ["a"]


@given(st.permutations([(case, kind) for case, kind in zip("abcde", "xyxyx", strict=True)]))
def test_the_order_of_findings_makes_no_difference(rows: list[tuple[str, str]]) -> None:
    made = [finding(case, Classification.REGRESSION, kind) for case, kind in rows]
    assert chosen(*made) == ["d", "c", "b", "a", "e"]
