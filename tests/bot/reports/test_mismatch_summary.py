"""Histograms and sentences about wrong numbers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.reports.mismatch_summary import describe_mismatch, describe_tolerance, ulp_bins
from fuzzing.outcomes import Mismatch


def mismatch(*ulps: int, **more: float | None) -> Mismatch:
    return Mismatch("y", "value", "", ulps=ulps, **more)  # type: ignore[arg-type]


def test_bins_are_named_by_what_they_hold() -> None:
    bins = ulp_bins(mismatch(10, 4, 2, 0, 1, 3))
    assert [(bin_.label, bin_.elements) for bin_ in bins] == [
        ("0", 10), ("1", 4), ("2–3", 2), ("4–7", 0), ("8–15", 1), ("NaN, ∞", 3),
    ]  # fmt: skip
    assert [bin_.share for bin_ in bins][:2] == [1.0, 0.4]
    assert [bin_.label for bin_ in ulp_bins(mismatch(1, *[1] * 25, 0), limit=8)][-1] == "2^24–2^25"
    assert ulp_bins(Mismatch("y", "type", "")) == ()


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=66), st.integers(2, 16))
def test_joining_loses_no_element_and_keeps_to_the_limit(ulps: list[int], limit: int) -> None:
    bins = ulp_bins(mismatch(*ulps), limit)
    assert sum(bin_.elements for bin_ in bins) == sum(ulps)
    assert len(bins) <= limit + 1
    assert all(0 <= bin_.share <= 1 for bin_ in bins)


def test_sentences() -> None:
    assert describe_tolerance(mismatch(1, 2, 0, passes_at=3.14159e-4)) == (
        "The smallest tolerance that passes is rtol = atol = 0.000314.",
    )
    assert "No tolerance lets it pass" in describe_tolerance(mismatch(1, 2, 1))[0]
    classified = describe_mismatch(mismatch(1, 2, 0, passes_at=0.5, compiled_error=0.5, library_error=1e-7))
    assert classified[1] == (
        "Compared with a float64 run of the same program, the compiled program is off by 0.5, the "
        "library by 1e-07."
    )
    assert describe_mismatch(Mismatch("y", "shape", "")) == ()
