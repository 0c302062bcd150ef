"""Cron lines mean what crontab(5) says."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from bot.config.cron import next_time, parse_triggers

#: A Thursday.
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("line", "following"),
    [
        ("0 3 * * *", "2026-01-02T03:00"),
        ("30 4 * * 0", "2026-01-04T04:30"),  # Sunday
        ("30 4 * * 7", "2026-01-04T04:30"),
        ("30 4 * * SUN", "2026-01-04T04:30"),
        ("30 4 * * 1-5", "2026-01-02T04:30"),  # Friday
        ("30 4 * * mon-sun", "2026-01-02T04:30"),
        ("30 4 * * 5-7", "2026-01-02T04:30"),
        ("30 4 * * */2", "2026-01-03T04:30"),  # 0, 2, 4, 6: Saturday
        ("30 4 * * 1,3", "2026-01-05T04:30"),
        ("0 0 13 * 5", "2026-01-02T00:00"),  # the 13th, or any Friday
        ("0 0 2 JAN 1", "2026-01-02T00:00"),
        ("0 0 29 2 *", "2028-02-29T00:00"),
    ],
)
def test_the_next_time(line: str, following: str) -> None:
    found = next_time(line, NOW)
    assert found is not None
    assert found.strftime("%Y-%m-%dT%H:%M") == following


def test_some_lines_name_no_time() -> None:
    assert next_time("0 0 30 2 *", NOW) is None


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("0 3 * *", "it has 4 fields instead of 5"),
        ("0 3 * * 8", "'8' is not a weekday"),
        ("0 3 * * 5-2", "end before they begin"),
        ("0 3 * * */0", "need a whole number"),
        ("0 3 * * ", "it has 4 fields"),
        ("61 3 * * *", "61"),
        ("0 3 * * 1-", "'' is not a weekday"),
    ],
)
def test_mistakes_are_told(line: str, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        parse_triggers(line)
