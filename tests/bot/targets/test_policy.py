"""What rows keep of a configuration, and when its schedules are due."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from bot.config import parse_config
from bot.targets import policy

START = datetime(2020, 1, 1, tzinfo=UTC)
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
NIGHTLY = b"""
version: 1
backend: openvino
schedules:
  nightly: {cron: "0 3 * * *", budget: 1h}
  weekly: {cron: "30 4 * * 0", sources: [onnx-node-tests]}
"""

moments = st.integers(0, 15 * 366 * 86400).map(lambda seconds: START + timedelta(seconds=seconds))
lines = st.sampled_from(
    ["0 0 13 * 5", "0 3 * * *", "*/7 * * * *", "30 4 * * 0", "0 0 1 1 *", "15 8-10 * * 1-5", "0 0 29 2 *"]
)


@given(line=lines, at=moments)
def test_the_next_time_is_later_and_nothing_lies_between(line: str, at: datetime) -> None:
    following = datetime.fromisoformat(policy.next_time(line, at))
    assert following > at
    assert following.utcoffset() == timedelta(0)
    assert (following.second, following.microsecond) == (0, 0)
    halfway = at + (following - at) / 2
    assert policy.next_time(line, halfway) == following.isoformat()


def test_a_line_that_names_no_time_is_never_due() -> None:
    assert policy.next_time("0 0 30 2 *", NOW) == ""
    assert not policy.is_due({"next": ""}, NOW)


def test_schedules_keep_their_next_time_while_their_line_stays() -> None:
    first = policy.build_schedules(parse_config(NIGHTLY), [], NOW)
    assert first == [
        {
            "name": "nightly",
            "cron": "0 3 * * *",
            "budget": 3600.0,
            "sources": None,
            "next": "2026-01-02T03:00:00+00:00",
        },
        {
            "name": "weekly",
            "cron": "30 4 * * 0",
            "budget": None,
            "sources": ["onnx-node-tests"],
            "next": "2026-01-04T04:30:00+00:00",
        },
    ]
    later = NOW + timedelta(days=3)
    changed = parse_config(NIGHTLY.replace(b"30 4", b"30 5"))
    second = policy.build_schedules(changed, first, later)
    assert second[0]["next"] == first[0]["next"], "missed, and so due"
    assert second[1]["next"] != first[1]["next"]
    assert [policy.is_due(one, later) for one in second] == [True, False]
    assert policy.overrides(first[0]) == {"budget": 3600.0}
    assert policy.overrides(first[1]) == {"sources": ["onnx-node-tests"]}


def test_a_repository_without_configuration_gates_nothing() -> None:
    assert policy.build_policy(None, "c") == {"branches": None, "gate": False, "commit": "c"}
    assert policy.build_schedules(None, [{"name": "nightly", "cron": "0 3 * * *", "next": ""}], NOW) == []
