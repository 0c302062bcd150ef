"""Repositories take turns: one with much to do does not make the others wait for all of it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.store import Database, campaigns, commands, jobs
from bot.store.models import Base, Campaign, Command, JobState

START = datetime(2026, 11, 20, 12, tzinfo=UTC)
BUSY, SMALL, NEW = "octo/busy", "octo/small", "octo/new"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = Database(f"sqlite:///{tmp_path}/assay.db")
    Base.metadata.create_all(made.engine)
    yield made
    made.close()


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def test_jobs_of_repositories_take_turns(database: Database) -> None:
    with database.transaction() as session:
        for number in range(5):
            jobs.enqueue(session, "retest", BUSY, f"busy-{number}", at(number))
        for number in range(2):
            jobs.enqueue(session, "retest", SMALL, f"small-{number}", at(10 + number))
        jobs.enqueue(session, "pull", NEW, "another kind", at(0))
    claimed = []
    for turn in range(7):
        with database.transaction() as session:
            job = jobs.claim(session, ["retest"], "me", at(20 + turn), at(80))
            assert job is not None
            claimed.append(job.key)
            jobs.complete(job, JobState.DONE, "", {}, at(20.5 + turn))
    assert claimed == ["busy-0", "small-0", "busy-1", "small-1", "busy-2", "busy-3", "busy-4"]


def test_a_job_that_runs_counts_as_a_turn_until_its_lease_ends(database: Database) -> None:
    with database.transaction() as session:
        for target in (BUSY, SMALL):
            for number in range(2):
                jobs.enqueue(session, "retest", target, f"{target}-{number}", at(number))
    with database.transaction() as session:
        claimed = [jobs.claim(session, ["retest"], "me", at(5), at(6)) for _ in range(2)]
        assert [one.target for one in claimed if one is not None] == [BUSY, SMALL]
        again = jobs.claim(session, ["retest"], "me", at(7), at(8))
    assert again is not None
    assert again.key == f"{BUSY}-0"


def test_campaigns_of_repositories_take_turns_and_go_on_once_begun(database: Database) -> None:
    with database.transaction() as session:
        for number, target in enumerate((BUSY, BUSY, BUSY, SMALL)):
            times = {"created_at": START, "updated_at": START}
            session.add(Campaign(target=target, head=f"{number:040x}", trigger="push", config={}, **times))
            session.flush()
    claimed = []
    for turn in range(4):
        for state in ("running", "done"):
            with database.transaction() as session:
                campaign = campaigns.claim(session, "me", at(turn), at(turn + 9))
                assert campaign is not None
                claimed.append(campaign.id)
                campaign.state, campaign.owner, campaign.lease_until = state, "", None
                campaign.updated_at = at(turn + 0.5)
    assert claimed == [1, 1, 4, 4, 2, 2, 3, 3]


def test_campaigns_of_pull_requests_come_first_also_before_begun_ones(database: Database) -> None:
    with database.transaction() as session:
        for number, (state, pull) in enumerate((("running", None), ("planning", 7), ("running", 8))):
            fields = {"trigger": "push", "config": {}, "created_at": START, "updated_at": START}
            session.add(Campaign(target=BUSY, head=f"{number:040x}", state=state, pull=pull, **fields))
            session.flush()
    with database.transaction() as session:
        claimed = [campaigns.claim(session, "me", at(1), at(9)) for _ in range(3)]
    assert [one.id for one in claimed if one is not None] == [3, 2, 1]


def test_comments_of_repositories_take_turns(database: Database) -> None:
    with database.transaction() as session:
        for number in range(4):
            target = SMALL if number == 3 else BUSY
            fields = {"position": 0, "number": 1, "author": "ada", "text": "/assay help"}
            session.add(Command(comment=number, target=target, created_at=at(number), **fields))
    with database.reading() as session:
        assert commands.pending_comments(session) == [0, 3, 1, 2]
