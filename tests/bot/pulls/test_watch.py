"""The threads of the room: what goes wrong in one job is told, and the others are done."""

from __future__ import annotations

import threading
from datetime import datetime

from bot.jobs.doing import Errand
from bot.pulls.watch import CheckRuns, Desk
from bot.store import jobs
from bot.store.models import Job, JobState
from tests.bot.pulls.pulls_kit import TARGET, Room


def ask_for(room: Room, *keys: str) -> None:
    with room.database.transaction() as session:
        for key in keys:
            jobs.ask(session, "work", TARGET, key, room.clock.now())


def states(room: Room) -> dict[str, tuple[str, str]]:
    with room.database.reading() as session:
        return {job.key: (job.state, job.reason) for job in session.query(Job)}


def test_a_bug_of_ours_fails_its_job_and_no_other(room: Room) -> None:
    done: list[str] = []

    def work(errand: Errand, owner: str, at: datetime) -> None:
        if errand.key == "a":
            raise KeyError("ours")
        with room.database.transaction() as session:
            job = jobs.held(session, errand.id, owner, errand.turn)
            assert job is not None
            jobs.settle(job, JobState.DONE, "did it", {}, at)
        done.append(errand.key)

    ask_for(room, "a", "b")
    room.desk = Desk(room.database, {"work": work}, room.clock.now)
    room.work()
    assert states(room) == {"a": ("failed", "a bug of Assay: KeyError: 'ours'"), "b": ("done", "did it")}
    assert done == ["b"]


def test_what_a_dead_process_was_at_is_done_by_the_next(room: Room) -> None:
    ask_for(room, "a")
    with room.database.transaction() as session:
        at = room.clock.now()
        assert jobs.claim(session, ["work"], "the dead", at, at.replace(year=2030)) is not None
    done: list[str] = []
    room.desk = Desk(room.database, {"work": lambda errand, *_: done.append(errand.key)}, room.clock.now)
    assert not room.desk.run_once(), "its lease is not over"
    room.desk.start(steal=False)
    assert not room.desk.run_once()
    room.desk.start(steal=True)
    assert room.desk.run_once()
    assert done == ["a"]


def test_both_threads_end_when_they_are_told(room: Room) -> None:
    stop = threading.Event()
    threads = [
        threading.Thread(target=room.desk.run_forever, args=(stop,)),
        threading.Thread(target=CheckRuns(room.checks).run_forever, args=(stop,)),
    ]
    for thread in threads:
        thread.start()
    stop.set()
    room.desk.wake()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
