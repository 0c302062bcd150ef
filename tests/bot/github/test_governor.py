"""Two processes, one limit: what one of them is told, both obey."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from bot.github.governor import SEARCH, Governor
from bot.github.limits import ThrottledError
from bot.store.database import Database
from tests.bot.github.outbox_kit import Clock, database


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Database]:
    made = database(tmp_path)
    yield made
    made.close()


def two(store: Database, clock: Clock) -> tuple[Governor, Governor]:
    """As two processes have them: nothing in common but the database."""
    other = Database(store.url.render_as_string(hide_password=False))
    made = [Governor(one, clock=clock, sleep=lambda s: clock.advance(seconds=s)) for one in (store, other)]
    return made[0], made[1]


def test_writes_of_two_processes_are_a_second_apart(store: Database) -> None:
    clock = Clock()
    times = []
    for _ in range(3):
        for governor in two(store, clock):
            governor.before_write("1", creates=False)
            times.append(clock.now)
    assert [later - at for at, later in itertools.pairwise(times)] == [timedelta(seconds=1)] * 5


def test_the_eighty_first_creation_of_a_minute_waits(store: Database) -> None:
    clock = Clock()
    quick, other = (
        Governor(store, gap_s=0, clock=clock, sleep=lambda s: clock.advance(seconds=s)) for _ in "12"
    )
    for _ in range(40):
        quick.before_write("1", creates=True)
        other.before_write("1", creates=True)
    with pytest.raises(ThrottledError, match="80 creations a minute") as caught:
        quick.before_write("1", creates=True)
    assert caught.value.wait_s == 60
    other.before_write("1", creates=False)
    other.before_write("2", creates=True)
    clock.advance(seconds=60)
    quick.before_write("1", creates=True)


def test_a_pause_holds_for_all_processes_and_one_account(store: Database) -> None:
    clock = Clock()
    told, untold = two(store, clock)
    told.pause("1", 90, "GitHub asks to slow down")
    for act in (untold.before_read, lambda account: untold.before_write(account, creates=False)):
        with pytest.raises(ThrottledError, match="slow down") as caught:
            act("1")
        assert caught.value.wait_s == 90
        act("2")
    clock.advance(seconds=90)
    untold.before_read("1")


def test_searches_are_thirty_a_minute_and_pause_nothing_else(store: Database) -> None:
    clock = Clock()
    first, second = two(store, clock)
    for _ in range(15):
        first.before_search("1")
        second.before_search("1")
    with pytest.raises(ThrottledError, match="30 searches a minute"):
        first.before_search("1")
    first.before_read("1")
    first.pause("1" + SEARCH, 30, "a limit of searches")
    first.before_write("1", creates=True)


def test_threads_take_turns(store: Database) -> None:
    clock = Clock()
    waits: list[float] = []
    governor = Governor(store, clock=clock, sleep=waits.append)
    threads = [
        threading.Thread(target=governor.before_write, args=("1",), kwargs={"creates": True})
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(waits) == [1, 2, 3, 4, 5]
