"""Two processes, one limit: what one of them is told, both obey."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from bot.github.limits import ThrottledError
from bot.github.rate_limiter import SEARCH, RateLimiter
from bot.store.database import Database
from tests.bot.github.outbox_kit import Clock, database


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Database]:
    made = database(tmp_path)
    yield made
    made.close()


def two(store: Database, clock: Clock) -> tuple[RateLimiter, RateLimiter]:
    """As two processes have them: nothing in common but the database."""
    other = Database(store.url.render_as_string(hide_password=False))
    made = [RateLimiter(one, clock=clock, sleep=lambda s: clock.advance(seconds=s)) for one in (store, other)]
    return made[0], made[1]


def test_writes_of_two_processes_are_a_second_apart(store: Database) -> None:
    clock = Clock()
    times = []
    for _ in range(3):
        for rate_limiter in two(store, clock):
            rate_limiter.acquire_write("1", creates_content=False)
            times.append(clock.now)
    assert [later - at for at, later in itertools.pairwise(times)] == [timedelta(seconds=1)] * 5


def test_the_eighty_first_creation_of_a_minute_waits(store: Database) -> None:
    clock = Clock()
    quick, other = (
        RateLimiter(store, gap_s=0, clock=clock, sleep=lambda s: clock.advance(seconds=s)) for _ in "12"
    )
    for _ in range(40):
        quick.acquire_write("1", creates_content=True)
        other.acquire_write("1", creates_content=True)
    with pytest.raises(ThrottledError, match="80 creations a minute") as caught:
        quick.acquire_write("1", creates_content=True)
    assert caught.value.wait_s == 60
    other.acquire_write("1", creates_content=False)
    other.acquire_write("2", creates_content=True)
    clock.advance(seconds=60)
    quick.acquire_write("1", creates_content=True)


def test_a_pause_holds_for_all_processes_and_one_account(store: Database) -> None:
    clock = Clock()
    reported, untold = two(store, clock)
    reported.pause("1", 90, "GitHub asks to slow down")
    for act in (untold.check_pause, lambda account: untold.acquire_write(account, creates_content=False)):
        with pytest.raises(ThrottledError, match="slow down") as caught:
            act("1")
        assert caught.value.wait_s == 90
        act("2")
    clock.advance(seconds=90)
    untold.check_pause("1")


def test_searches_are_thirty_a_minute_and_pause_nothing_else(store: Database) -> None:
    clock = Clock()
    first, second = two(store, clock)
    for _ in range(15):
        first.acquire_search("1")
        second.acquire_search("1")
    with pytest.raises(ThrottledError, match="30 searches a minute"):
        first.acquire_search("1")
    first.check_pause("1")
    first.pause("1" + SEARCH, 30, "a limit of searches")
    first.acquire_write("1", creates_content=True)


def test_threads_take_turns(store: Database) -> None:
    clock = Clock()
    waits: list[float] = []
    rate_limiter = RateLimiter(store, clock=clock, sleep=waits.append)
    threads = [
        threading.Thread(target=rate_limiter.acquire_write, args=("1",), kwargs={"creates_content": True})
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(waits) == [1, 2, 3, 4, 5]
