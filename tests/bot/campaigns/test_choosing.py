"""Which failing cases are made small, and in which order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.campaigns.choosing import wanted
from bot.campaigns.judging import NO_BASE
from bot.store.models import Finding, Standing

SIZES = {"a": 30, "b": 10, "c": 20, "d": 5, "e": 40}


def finding(case: str, standing: Standing, signature: str, reason: str = "") -> Finding:
    return Finding(campaign_id=1, case_id=case, standing=standing.value, signature=signature, reason=reason)


def chosen(*rows: Finding) -> list[str]:
    return [one.case_id for one in wanted(rows, SIZES.__getitem__)]


def test_each_kind_of_what_is_new_comes_before_more_of_it_and_the_smallest_first() -> None:
    rows = [finding(case, Standing.REGRESSION, kind) for case, kind in zip("abcde", "xxxyy", strict=True)]
    assert chosen(*rows) == ["d", "b", "c", "a", "e"]


def test_of_what_was_broken_one_of_a_kind_is_enough() -> None:
    rows = [finding(case, Standing.ALREADY_BROKEN, "x") for case in "abc"]
    assert chosen(*rows, finding("e", Standing.REGRESSION, "y")) == ["e", "b"]


def test_what_is_not_sure_is_left_alone() -> None:
    unsure = [Standing.FLAKY, Standing.FLAKY_PROGRAM, Standing.INFRASTRUCTURE, Standing.FIXED]
    assert chosen(*(finding("a", standing, "x") for standing in (*unsure, Standing.SUPPORT_LOST))) == []
    assert chosen(finding("a", Standing.UNJUDGED, "x", "base was not run")) == []
    assert chosen(finding("a", Standing.UNJUDGED, "x", NO_BASE)) == ["a"]


@given(st.permutations([(case, kind) for case, kind in zip("abcde", "xyxyx", strict=True)]))
def test_the_order_of_findings_makes_no_difference(rows: list[tuple[str, str]]) -> None:
    made = [finding(case, Standing.REGRESSION, kind) for case, kind in rows]
    assert chosen(*made) == ["d", "c", "b", "a", "e"]
