"""Silence puts a bug away only when it is long enough, and no program shows it any more."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.bugs import stale_bugs
from bot.bugs.stale_bugs import MAX_SILENCE, MIN_SILENCE, compute_silence_limit
from bot.store import Database, bugs, jobs, retests
from bot.store.models import Base, Bug, BugState, Campaign, Effect, Job, JobState, Retest, Toolchain

TARGET, START = "octo/compiler", datetime(2026, 1, 1, tzinfo=UTC)


def test_how_long_is_waited() -> None:
    daily = compute_silence_limit(START, START + timedelta(days=9), 10)
    assert daily == pytest.approx(timedelta(days=13.8), abs=timedelta(days=0.3)) or daily == MIN_SILENCE
    assert compute_silence_limit(START, START + timedelta(days=18), 10) == pytest.approx(
        timedelta(days=27.6), abs=timedelta(days=0.1)
    )
    assert compute_silence_limit(START, START + timedelta(days=8), 9) == MAX_SILENCE, "too few to make a rate"
    assert compute_silence_limit(START, START, 20) == MAX_SILENCE


@given(st.integers(1, 10_000), st.integers(0, 4000))
def test_it_is_within_limits_and_grows_with_the_gaps(seen: int, days: int) -> None:
    wait = compute_silence_limit(START, START + timedelta(days=days), seen)
    assert MIN_SILENCE <= wait <= MAX_SILENCE
    assert (
        wait <= compute_silence_limit(START, START + timedelta(days=2 * days), seen) or not days or seen < 10
    )


class BugHarness:
    """A bug that was seen once a day for twelve days, then no more; looked at after `days`."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.last = START + timedelta(days=11)

    def look(self, days: int) -> bool:
        with self.database.transaction() as session:
            at = self.last + timedelta(days=days)
            quiet = bugs.unseen_since(session, at - MIN_SILENCE, 0, 10)
            return sum(stale_bugs.close_if_stale(session, bug, at) for bug in quiet) > 0

    def retest(self, failed: int, *, control_passed: bool = True, days: int = 1) -> None:
        with self.database.transaction() as session:
            row = Retest(bug_id=1, purpose="fix", commit="b" * 40, toolchain="t" * 64, runs=3, failed=failed)
            row.control_passed, row.at = control_passed, self.last + timedelta(days=days)
            retests.add(session, row)

    @property
    def bug(self) -> Bug:
        with self.database.reading() as session:
            return session.get_one(Bug, 1)

    def jobs(self) -> list[Job]:
        with self.database.reading() as session:
            return list(session.query(Job))

    def said(self) -> list[str]:
        with self.database.reading() as session:
            rows = session.query(Effect).order_by(Effect.kind)
            return [str(row.payload.get("state_reason") or row.payload.get("body")) for row in rows]


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[BugHarness]:
    database = Database(f"sqlite:///{tmp_path}/assay.db")
    Base.metadata.create_all(database.engine)
    made = BugHarness(database)
    tool = {"label": "compiler 1.0", "python": "python", "versions": {}, "requirements": []}
    with database.transaction() as session:
        session.add(
            Toolchain(digest="t" * 64, backend="tvm", provisioner="release", created_at=START, **tool)
        )
        session.flush()
        times = {"created_at": START, "updated_at": START}
        session.add(Campaign(target=TARGET, head="a" * 40, trigger="push", head_toolchain="t" * 64, **times))
        bug = Bug(target=TARGET, signature="s", title="Resize", state=BugState.REPORTED.value, issue=7)
        bug.first_seen, bug.last_seen, bug.seen, bug.campaign_id = START, made.last, 12, 1
        bug.case_id = "c" * 64
        session.add(bug)
    yield made
    database.close()


def test_a_program_that_nobody_ran_is_run_first(harness: BugHarness) -> None:
    assert not harness.look(20)
    assert not harness.look(21)
    (job,) = harness.jobs()
    assert (job.kind, job.bug_id, job.arguments["purpose"]) == ("retest", 1, "obsolete")
    assert harness.bug.state == BugState.REPORTED.value


def test_a_program_that_works_keeps_it_for_ever(harness: BugHarness) -> None:
    harness.retest(3)
    assert not harness.look(10_000)
    assert (harness.jobs(), harness.said()) == ([], [])


def test_silence_and_a_program_that_stopped_end_it(harness: BugHarness) -> None:
    harness.retest(0)
    assert not harness.look(13), "not yet"
    assert harness.look(20)
    assert harness.bug.state == BugState.CLOSED.value
    assert harness.bug.reason == (
        "obsolete: its program passed when it last ran, and it was not seen for 20 days"
    )
    comment, reason = harness.said()
    assert comment.startswith("Assay closes this: its program passed when it last ran")
    assert reason == "not_planned"
    assert not harness.look(21), "once"


def test_what_cannot_be_run_says_so(harness: BugHarness) -> None:
    harness.retest(0, control_passed=False)
    with harness.database.transaction() as session:
        jobs.enqueue(session, "retest", TARGET, "k", harness.last, bug_id=1)
        job = jobs.of_key(session, "k")
        assert job is not None
        jobs.complete(job, JobState.FAILED, "no such release", {}, harness.last + timedelta(days=2))
    assert harness.look(20)
    assert harness.bug.reason == (
        "obsolete: it was not seen for 20 days, and its program can no longer be run"
    )


def test_what_people_decided_is_left(harness: BugHarness) -> None:
    harness.retest(0)
    with harness.database.transaction() as session:
        bugs.set_resolution(session, session.get_one(Bug, 1), "invalid", "says ada")
    assert not harness.look(20)


def test_a_program_is_run_once_in_each_silence_though_nothing_was_pushed(harness: BugHarness) -> None:
    assert not harness.look(20)
    with harness.database.transaction() as session:
        (job,) = session.query(Job)
        jobs.complete(job, JobState.DONE, "fails in 3 of 3 fresh runs", {}, harness.last + timedelta(days=20))
        bug = session.get_one(Bug, 1)
        bug.last_seen, bug.seen = harness.last + timedelta(days=30), 13
    harness.last += timedelta(days=30)
    assert not harness.look(60)
    assert [job.state for job in harness.jobs()] == [JobState.DONE.value, JobState.PENDING.value]
