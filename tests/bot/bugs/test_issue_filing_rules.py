"""What campaigns see of bugs, and what is made of it: branches, old campaigns, duplicates, new lives."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.bugs import issue_filing, transitions
from bot.store import Database, audit, bugs, outbox, retests
from bot.store.bug_states import Event
from bot.store.bugs import Sighting
from bot.store.models import Base, Bug, BugState, Campaign, Effect, EffectState, Retest, Toolchain
from bot.store.outbox import EffectDraft

TARGET, START = "octo/compiler", datetime(2026, 11, 20, 12, tzinfo=UTC)
MAIN = "refs/heads/main"


class BugHarness:
    """A target whose campaigns see bugs."""

    def __init__(self, database: Database) -> None:
        self.database, self.at = database, START

    def campaign(
        self, head: str, ref: str = MAIN, pull: int | None = None, at: datetime | None = None
    ) -> int:
        with self.database.transaction() as session:
            row = Campaign(target=TARGET, head=head * 40, ref=ref, pull=pull, trigger=f"{ref} {pull}")
            row.head_toolchain, row.config = "t" * 64, {"reports": {"mode": "auto"}}
            row.created_at = row.updated_at = at or self.at
            session.add(row)
            session.flush()
            return row.id

    def sees(self, campaign: int, signature: str = "s", pull: bool = False, reason: str = "") -> str:
        self.at += timedelta(minutes=1)
        with self.database.transaction() as session:
            by = Sighting(campaign, pull, case="c" * 64)
            return issue_filing.record_bug(
                session, TARGET, signature, "Add: crash", "Add", self.at, reason, by
            )

    def files(self, campaign: int, hold: str = "") -> EffectState | None:
        """A campaign posts its issue."""
        with self.database.transaction() as session:
            draft = EffectDraft("issue", "e", TARGET, {"n": campaign}, "s", hold=hold)
            return outbox.post(session, [draft], campaign_id=campaign, issues_per_day=5, at=self.at)[0].state

    def moves(self, event: Event, issue: int | None = None, bug: int = 1) -> None:
        self.at += timedelta(minutes=1)
        with self.database.transaction() as session:
            row = session.get_one(Bug, bug)
            row.issue = issue
            bugs.apply_event(session, row, event, f"because of {event.value}", self.at)

    def bug(self, number: int = 1) -> Bug:
        with self.database.reading() as session:
            return session.get_one(Bug, number)

    def asked(self, campaign: int) -> int:
        with self.database.transaction() as session:
            return transitions.request_retests(session, campaign, self.at)

    def effects(self) -> dict[str, str]:
        with self.database.reading() as session:
            return {row.kind: row.state for row in session.query(Effect)}


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[BugHarness]:
    database = Database(f"sqlite:///{tmp_path}/assay.db")
    Base.metadata.create_all(database.engine)
    tool = {"label": "x", "python": "python", "versions": {}, "requirements": []}
    with database.transaction() as session:
        session.add(
            Toolchain(digest="t" * 64, backend="tvm", provisioner="release", created_at=START, **tool)
        )
    yield BugHarness(database)
    database.close()


def test_a_bug_that_is_not_reported_is_asked_about_once_a_day(harness: BugHarness) -> None:
    harness.sees(harness.campaign("1"))
    assert harness.asked(harness.campaign("2")) == 0, "it was seen a minute ago"
    harness.at += timedelta(days=1)
    assert harness.asked(harness.campaign("3")) == 1
    with harness.database.transaction() as session:
        row = Retest(bug_id=1, purpose="fix", commit="3" * 40, toolchain="t" * 64, runs=3, failed=3)
        row.control_passed, row.at = True, harness.at
        retests.add(session, row)
    harness.at += timedelta(hours=23)
    assert harness.asked(harness.campaign("4")) == 0, "it was tested a day ago"
    harness.moves(Event.REPORTED, issue=7)
    assert harness.asked(harness.campaign("5")) == 1, "whoever reads the issue waits for the fix"


def test_a_bug_is_asked_about_on_its_own_branch(harness: BugHarness) -> None:
    harness.sees(harness.campaign("1"))
    harness.moves(Event.REPORTED, issue=7)
    assert harness.asked(harness.campaign("2", ref="refs/heads/release")) == 0
    assert harness.asked(harness.campaign("3", ref="refs/heads/gh-readonly-queue/main/pr-1")) == 0
    assert harness.asked(harness.campaign("4", pull=7)) == 0
    assert harness.asked(harness.campaign("5")) == 1


def test_what_only_a_pull_request_shows_is_asked_of_no_branch(harness: BugHarness) -> None:
    harness.sees(harness.campaign("1", pull=7), pull=True, reason="in a pull request")
    assert (harness.bug().state, harness.bug().reason) == (BugState.NEW.value, "in a pull request")
    harness.at += timedelta(days=2)
    assert harness.asked(harness.campaign("2")) == 0


def test_a_campaign_from_before_its_end_brings_no_bug_back(harness: BugHarness) -> None:
    old = harness.campaign("1")
    harness.sees(old)
    harness.moves(Event.CLOSED, issue=7)
    harness.sees(old)
    assert harness.bug().state == BugState.CLOSED.value
    assert harness.effects() == {}
    harness.sees(harness.campaign("2", at=harness.at))
    assert harness.bug().state == BugState.REPORTED.value
    assert set(harness.effects()) == {"comment", "issue_state"}


def test_what_was_fixed_unheard_comes_back_unheard(harness: BugHarness) -> None:
    harness.sees(harness.campaign("1"))
    harness.moves(Event.REPORTED, issue=7)
    harness.moves(Event.PASSED, issue=7)
    harness.sees(harness.campaign("2", at=harness.at))
    assert harness.bug().state == BugState.REPORTED.value
    assert harness.effects() == {}, "nobody was told that it was mended"


def test_a_duplicate_brings_back_what_it_is(harness: BugHarness) -> None:
    first = harness.campaign("1")
    harness.sees(first)
    harness.sees(first, "other")
    harness.moves(Event.CLOSED, issue=7)
    with harness.database.transaction() as session:
        bugs.duplicate(session, session.get_one(Bug, 2), session.get_one(Bug, 1), "says ada")
    quiet = harness.sees(harness.campaign("2", at=harness.at), "other")
    assert quiet == "a duplicate of #7"
    assert harness.bug().state == BugState.REPORTED.value
    assert set(harness.effects()) == {"comment", "issue_state"}


def merged(harness: BugHarness, bug: int, of: int) -> None:
    with harness.database.transaction() as session:
        bugs.duplicate(session, session.get_one(Bug, bug), session.get_one(Bug, of), "says ada")


def last_seen(harness: BugHarness, number: int = 1) -> tuple[int | None, datetime, int]:
    bug = harness.bug(number)
    return bug.campaign_id, bug.last_seen, bug.seen


def test_what_shows_a_duplicate_has_shown_the_bug_that_it_is(harness: BugHarness) -> None:
    early = harness.campaign("1")
    for signature in ("s", "t", "u"):
        harness.sees(early, signature)
    merged(harness, 2, 1)
    merged(harness, 3, 2)
    late = harness.campaign("2", at=harness.at)
    harness.sees(late, "u")
    assert last_seen(harness) == (late, harness.at, 2), "its campaigns are those of both"
    harness.sees(late, "t")
    harness.sees(late, "s")
    assert last_seen(harness) == (late, harness.at, 2), "one campaign is one sight, by whatever name"
    assert harness.asked(late) == 0, "the head that shows it is not asked whether it is there"


def test_a_bug_whose_duplicate_is_still_seen_is_not_silent(harness: BugHarness) -> None:
    early = harness.campaign("1")
    for signature in ("s", "t"):
        harness.sees(early, signature)
    merged(harness, 2, 1)
    harness.at += timedelta(days=200)
    harness.sees(harness.campaign("2", at=harness.at), "t")
    with harness.database.reading() as session:
        assert bugs.unseen_since(session, harness.at - timedelta(days=100), 0, 9) == []


def test_the_first_bug_was_seen_when_its_duplicate_was_before_they_were_one(harness: BugHarness) -> None:
    harness.sees(harness.campaign("1"))
    late = harness.campaign("2", at=harness.at)
    harness.sees(late, "t")
    seen = harness.at
    merged(harness, 2, 1)
    merged(harness, 2, 1)
    assert last_seen(harness) == (late, seen, 1)
    harness.sees(harness.campaign("3", at=harness.at), "u")
    merged(harness, 1, 3)
    assert last_seen(harness, 3) == (late + 1, harness.at, 1), "what is older tells nothing"


def test_what_only_a_pull_request_showed_of_a_duplicate_says_nothing_of_the_first(
    harness: BugHarness,
) -> None:
    first = harness.campaign("1")
    harness.sees(first)
    seen = harness.at
    harness.sees(harness.campaign("2", pull=7), "t", pull=True)
    merged(harness, 2, 1)
    assert last_seen(harness) == (first, seen, 1)


def test_what_is_ruled_invalid_stays_over(harness: BugHarness) -> None:
    harness.sees(harness.campaign("1"))
    with harness.database.transaction() as session:
        bugs.set_resolution(session, session.get_one(Bug, 1), "invalid", "says ada")
    harness.moves(Event.CLOSED, issue=7)
    assert harness.sees(harness.campaign("2", at=harness.at)) == "marked invalid"
    assert (harness.bug().state, harness.effects()) == (BugState.CLOSED.value, {})


@pytest.mark.parametrize("hold", ["", "a maintainer releases each report"])
def test_an_issue_that_is_not_out_is_withdrawn_and_begins_anew(harness: BugHarness, hold: str) -> None:
    first = harness.campaign("1")
    harness.sees(first)
    harness.files(first, hold)
    with harness.database.transaction() as session:
        bugs.apply_event(session, session.get_one(Bug, 1), Event.PASSED, "it passes", harness.at)
        outbox.withdraw(session, 1, "it passes")
    assert harness.effects() == {"issue": EffectState.HELD.value}
    second = harness.campaign("2", at=harness.at)
    harness.sees(second)
    assert harness.files(second, hold) is (EffectState.HELD if hold else EffectState.PENDING)
    with harness.database.reading() as session:
        assert session.get_one(Effect, "e").payload == {"n": second}
    assert harness.bug().reason == (hold or "its issue is in the outbox")


def test_a_rehearsed_issue_is_rehearsed_again_in_a_new_life(harness: BugHarness) -> None:
    first = harness.campaign("1")
    harness.sees(first)
    harness.files(first)
    with harness.database.transaction() as session:
        outbox.mark_sent(session, "e", "file:///tmp/e.json", None, harness.at)
    assert harness.bug().state == BugState.REPORTED.value
    assert harness.files(first) is EffectState.SENT, "once for each life"
    harness.moves(Event.PASSED)
    second = harness.campaign("2", at=harness.at)
    harness.sees(second)
    assert harness.bug().state == BugState.NEW.value
    assert harness.files(second) is EffectState.PENDING


def test_every_state_and_silence_has_its_reason(harness: BugHarness) -> None:
    harness.sees(harness.campaign("1"), reason="it fails at base, too")
    harness.sees(harness.campaign("2"), reason="it fails at base, too")
    with harness.database.reading() as session:
        reported = [(act.action, act.reason) for act in audit.of(session, TARGET, "bug:1")]
    assert reported == [("new", "found: Add: crash"), ("silent", "it fails at base, too")]
