"""Durations and sizes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.config.units import parse_duration, parse_size, show_duration, show_size


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90.0), ("5m", 300.0), ("1h", 3600.0), ("1.5 h", 5400.0), ("0.25s", 0.25)]
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "value", ["", "5", "m", "-5m", "5 minutes", "1e3s", "٣m", "5m\n", True, None, ["5m"]]
)
def test_no_durations(value: object) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(value)


@pytest.mark.parametrize(("text", "count"), [("4GiB", 4 << 30), ("1.5KiB", 1536), ("7 B", 7)])
def test_sizes(text: str, count: int) -> None:
    assert parse_size(text) == count


@pytest.mark.parametrize("value", ["", "4", "4GB", "4 gib", "-1B", "4GiBs", 1.5, False, None])
def test_no_sizes(value: object) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        parse_size(value)


def test_numbers_may_be_bare_in_what_was_stored() -> None:
    assert (parse_duration(300, bare=True), parse_size(1024, bare=True)) == (300.0, 1024)
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(True, bare=True)
    with pytest.raises(ValueError, match="is not a size"):
        parse_size(1.5, bare=True)


@given(st.integers(1, 10**9 - 1))
def test_what_is_shown_is_read_back(number: int) -> None:
    assert parse_duration(show_duration(number)) == number
    assert parse_size(show_size(number)) == number
