"""The limits over all processes: never more than GitHub allows, and nobody waits longer than need be."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.store import rate_usage, response_cache
from bot.store.database import Database
from tests.bot.github.outbox_kit import database

START = datetime(2026, 11, 20, 12, tzinfo=UTC)
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Database]:
    made = database(tmp_path)
    yield made
    made.close()


def create(store: Database, at: datetime, account: str = "1", *, creates_content: bool = True) -> datetime:
    with store.transaction(durable=False) as session:
        return rate_usage.reserve(
            session,
            account,
            at,
            gap=SECOND,
            creates_content=creates_content,
            windows=rate_usage.CREATIONS,
            max_wait=timedelta(days=1),
        )


def test_creations_keep_every_window_and_waste_no_time(store: Database) -> None:
    with store.transaction() as session:
        times = [
            rate_usage.reserve(
                session,
                "1",
                START,
                gap=SECOND,
                creates_content=True,
                windows=rate_usage.CREATIONS,
                max_wait=timedelta(days=1),
            )
            for _ in range(620)
        ]
    assert times == sorted(times)
    for at, later in itertools.pairwise(times):
        assert later - at >= SECOND
    for most, span in rate_usage.CREATIONS:
        for first, beyond in zip(times, times[most:], strict=False):
            assert beyond - first >= span
    assert times[499] - times[0] < HOUR, "the limit of the minute alone allows as many"
    assert times[500] - times[0] == HOUR


def test_changes_keep_the_gap_but_are_no_creations(store: Database) -> None:
    times = [create(store, START, creates_content=False) for _ in range(100)]
    assert times[-1] - times[0] == 99 * SECOND
    assert create(store, times[-1]) - times[-1] == SECOND


def test_accounts_have_limits_of_their_own(store: Database) -> None:
    assert [create(store, START, str(number)) for number in range(5)] == [START] * 5


def test_a_time_too_far_away_is_left_to_others(store: Database) -> None:
    with store.transaction() as session:
        for _ in range(3):
            when = rate_usage.reserve(session, "1", START, gap=10 * SECOND, max_wait=SECOND)
        assert when == START + 10 * SECOND
        assert rate_usage.reserve(session, "1", when, gap=10 * SECOND) == when


def test_the_longest_pause_wins_and_ends(store: Database) -> None:
    with store.transaction() as session:
        rate_usage.pause(session, "1", START + HOUR, "the hour's limit")
        rate_usage.pause(session, "1", START + MINUTE, "a shorter one")
        rate_usage.pause(session, "2", START + MINUTE, "another")
        assert {name: one.reason for name, one in rate_usage.pauses(session, START).items()} == {
            "1": "the hour's limit",
            "2": "another",
        }
        assert set(rate_usage.pauses(session, START + MINUTE)) == {"1"}
        assert rate_usage.paused(session, "1", START + HOUR) is None
        rate_usage.prune(session, START + 3 * HOUR)
        assert not rate_usage.pauses(session, START)


def test_answers_are_kept_until_nobody_asks(store: Database) -> None:
    with store.transaction() as session:
        response_cache.store_response(session, "u", "e1", {"value": 1}, START)
        response_cache.store_response(session, "u", "e2", {"value": [2]}, START)
        assert response_cache.find(session, "u") == ("e2", {"value": [2]})
        response_cache.prune(session, START + response_cache.KEPT)
        assert response_cache.find(session, "u") is not None
        response_cache.prune(session, START + response_cache.KEPT + SECOND)
        assert response_cache.find(session, "u") is None
