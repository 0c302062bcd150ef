"""Tolerances as people write them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.proposals.tolerances import keyword_text, power_of_ten, read_defaults, short_number
from tests.bot.proposals.regressions import cumsum, regression

SOURCE = """
def check(model, rtol=1e-7, atol=1e-5, *, eps=1e-3, name=NAME):
    pass


class Tests:
    def helper(self, op, rtol=1e-3, atol=1e-6):
        pass
"""


@pytest.mark.parametrize(
    ("value", "text"),
    [(1e-5, "1e-5"), (0.001, "1e-3"), (0.00025, "2.5e-4"), (0.01, "0.01"), (0.0, "0"), (1.3e-06, "1.3e-6")],
)
def test_short_numbers(value: float, text: str) -> None:
    assert short_number(value) == text
    assert float(text) == value


def test_what_the_helper_does_anyway_is_left_out() -> None:
    assert read_defaults(SOURCE, "check") == {"rtol": 1e-7, "atol": 1e-5, "eps": 1e-3}
    assert read_defaults(SOURCE, "helper") == {"rtol": 1e-3, "atol": 1e-6}
    assert read_defaults(SOURCE, "other") == read_defaults("def (", "check") == {}
    given = {"rtol": 1e-3, "atol": 1e-5}
    assert keyword_text(given, read_defaults(SOURCE, "check")) == ", rtol=1e-3"
    assert keyword_text(given, read_defaults(SOURCE, "helper")) == ", atol=1e-5"
    assert keyword_text(given, {"rtol": None}) == ", rtol=1e-3, atol=1e-5"
    assert keyword_text(given, given) == ""


@pytest.mark.parametrize(
    ("value", "power"), [(1.3e-6, 1e-5), (1e-3, 1e-3), (1e-5, 1e-5), (0.2, 1.0), (0.0, 0.0), (1.0, 1.0)]
)
def test_the_next_power_of_ten(value: float, power: float) -> None:
    assert power_of_ten(value) == power


@pytest.mark.parametrize(
    ("passes_at", "want"), [(None, (1e-5, 1e-5)), (0.5, (1e-5, 1e-5)), (2e-6, (1.3e-6, 1e-5))]
)
def test_a_tolerance_is_short_if_the_bug_shows_with_it(
    passes_at: float | None, want: tuple[float, float]
) -> None:
    bug = regression("tvm", cumsum())
    (one,) = bug.outcome.evidence.mismatches
    other = replace(one, rtol=1.3e-6, passes_at=passes_at)
    outcome = replace(bug.outcome, evidence=replace(bug.outcome.evidence, mismatches=(other,)))
    assert replace(bug, outcome=outcome).tolerance == want
