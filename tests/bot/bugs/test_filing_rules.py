"""What campaigns see of bugs, and what is made of it: branches, old campaigns, duplicates, new lives."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.bugs import changing, filing
from bot.store import Database, audit, bugs, outbox
from bot.store.bugs import Sighting
from bot.store.life import Event
from bot.store.models import Base, Bug, BugState, Campaign, Effect, EffectState, Toolchain
from bot.store.outbox import Draft

TARGET, START = "octo/compiler", datetime(2026, 11, 20, 12, tzinfo=UTC)
MAIN = "refs/heads/main"


class World:
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
            return filing.saw(session, TARGET, signature, "Add: crash", "Add", self.at, reason, by)

    def files(self, campaign: int, hold: str = "") -> EffectState | None:
        """A campaign posts its issue."""
        with self.database.transaction() as session:
            draft = Draft("issue", "e", TARGET, {"n": campaign}, "s", hold=hold)
            return outbox.post(session, [draft], campaign_id=campaign, issues_per_day=5, at=self.at)[0].state

    def moves(self, event: Event, issue: int | None = None, bug: int = 1) -> None:
        self.at += timedelta(minutes=1)
        with self.database.transaction() as session:
            row = session.get_one(Bug, bug)
            row.issue = issue
            bugs.move(session, row, event, f"because of {event.value}", self.at)

    def bug(self, number: int = 1) -> Bug:
        with self.database.reading() as session:
            return session.get_one(Bug, number)

    def asked(self, campaign: int) -> int:
        with self.database.transaction() as session:
            return changing.after_campaign(session, campaign, self.at)

    def effects(self) -> dict[str, str]:
        with self.database.reading() as session:
            return {row.kind: row.state for row in session.query(Effect)}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    database = Database(f"sqlite:///{tmp_path}/assay.db")
    Base.metadata.create_all(database.engine)
    tool = {"label": "x", "python": "python", "versions": {}, "requirements": []}
    with database.transaction() as session:
        session.add(
            Toolchain(digest="t" * 64, backend="tvm", provisioner="release", created_at=START, **tool)
        )
    yield World(database)
    database.close()


def test_a_bug_is_asked_about_on_its_own_branch(world: World) -> None:
    world.sees(world.campaign("1"))
    assert world.asked(world.campaign("2", ref="refs/heads/release")) == 0
    assert world.asked(world.campaign("3", ref="refs/heads/gh-readonly-queue/main/pr-1")) == 0
    assert world.asked(world.campaign("4", pull=7)) == 0
    assert world.asked(world.campaign("5")) == 1


def test_what_only_a_pull_request_shows_is_asked_of_no_branch(world: World) -> None:
    world.sees(world.campaign("1", pull=7), pull=True, reason="in a pull request")
    assert (world.bug().state, world.bug().reason) == (BugState.NEW.value, "in a pull request")
    assert world.asked(world.campaign("2")) == 0


def test_a_campaign_from_before_its_end_brings_no_bug_back(world: World) -> None:
    old = world.campaign("1")
    world.sees(old)
    world.moves(Event.CLOSED, issue=7)
    world.sees(old)
    assert world.bug().state == BugState.CLOSED.value
    assert world.effects() == {}
    world.sees(world.campaign("2", at=world.at))
    assert world.bug().state == BugState.REPORTED.value
    assert set(world.effects()) == {"comment", "issue_state"}


def test_what_was_fixed_unheard_comes_back_unheard(world: World) -> None:
    world.sees(world.campaign("1"))
    world.moves(Event.REPORTED, issue=7)
    world.moves(Event.PASSED, issue=7)
    world.sees(world.campaign("2", at=world.at))
    assert world.bug().state == BugState.REPORTED.value
    assert world.effects() == {}, "nobody was told that it was mended"


def test_a_duplicate_brings_back_what_it_is(world: World) -> None:
    first = world.campaign("1")
    world.sees(first)
    world.sees(first, "other")
    world.moves(Event.CLOSED, issue=7)
    with world.database.transaction() as session:
        bugs.duplicate(session, session.get_one(Bug, 2), session.get_one(Bug, 1), "says ada")
    quiet = world.sees(world.campaign("2", at=world.at), "other")
    assert quiet == "a duplicate of #7"
    assert world.bug().state == BugState.REPORTED.value
    assert set(world.effects()) == {"comment", "issue_state"}


def merged(world: World, bug: int, of: int) -> None:
    with world.database.transaction() as session:
        bugs.duplicate(session, session.get_one(Bug, bug), session.get_one(Bug, of), "says ada")


def last_seen(world: World, number: int = 1) -> tuple[int | None, datetime, int]:
    bug = world.bug(number)
    return bug.campaign_id, bug.last_seen, bug.seen


def test_what_shows_a_duplicate_has_shown_the_bug_that_it_is(world: World) -> None:
    early = world.campaign("1")
    for signature in ("s", "t", "u"):
        world.sees(early, signature)
    merged(world, 2, 1)
    merged(world, 3, 2)
    late = world.campaign("2", at=world.at)
    world.sees(late, "u")
    assert last_seen(world) == (late, world.at, 2), "its campaigns are those of both"
    world.sees(late, "t")
    world.sees(late, "s")
    assert last_seen(world) == (late, world.at, 2), "one campaign is one sight, by whatever name"
    assert world.asked(late) == 0, "the head that shows it is not asked whether it is there"


def test_a_bug_whose_duplicate_is_still_seen_is_not_silent(world: World) -> None:
    early = world.campaign("1")
    for signature in ("s", "t"):
        world.sees(early, signature)
    merged(world, 2, 1)
    world.at += timedelta(days=200)
    world.sees(world.campaign("2", at=world.at), "t")
    with world.database.reading() as session:
        assert bugs.quiet_since(session, world.at - timedelta(days=100), 0, 9) == []


def test_the_first_bug_was_seen_when_its_duplicate_was_before_they_were_one(world: World) -> None:
    world.sees(world.campaign("1"))
    late = world.campaign("2", at=world.at)
    world.sees(late, "t")
    seen = world.at
    merged(world, 2, 1)
    merged(world, 2, 1)
    assert last_seen(world) == (late, seen, 1)
    world.sees(world.campaign("3", at=world.at), "u")
    merged(world, 1, 3)
    assert last_seen(world, 3) == (late + 1, world.at, 1), "what is older tells nothing"


def test_what_only_a_pull_request_showed_of_a_duplicate_says_nothing_of_the_first(world: World) -> None:
    first = world.campaign("1")
    world.sees(first)
    seen = world.at
    world.sees(world.campaign("2", pull=7), "t", pull=True)
    merged(world, 2, 1)
    assert last_seen(world) == (first, seen, 1)


def test_what_is_ruled_invalid_stays_over(world: World) -> None:
    world.sees(world.campaign("1"))
    with world.database.transaction() as session:
        bugs.rule(session, session.get_one(Bug, 1), "invalid", "says ada")
    world.moves(Event.CLOSED, issue=7)
    assert world.sees(world.campaign("2", at=world.at)) == "ruled invalid"
    assert (world.bug().state, world.effects()) == (BugState.CLOSED.value, {})


@pytest.mark.parametrize("hold", ["", "a maintainer releases each report"])
def test_an_issue_that_is_not_out_is_withdrawn_and_begins_anew(world: World, hold: str) -> None:
    first = world.campaign("1")
    world.sees(first)
    world.files(first, hold)
    with world.database.transaction() as session:
        bugs.move(session, session.get_one(Bug, 1), Event.PASSED, "it passes", world.at)
        outbox.withdraw(session, 1, "it passes")
    assert world.effects() == {"issue": EffectState.HELD.value}
    second = world.campaign("2", at=world.at)
    world.sees(second)
    assert world.files(second, hold) is (EffectState.HELD if hold else EffectState.INTENDED)
    with world.database.reading() as session:
        assert session.get_one(Effect, "e").payload == {"n": second}
    assert world.bug().reason == (hold or "its issue is in the outbox")


def test_a_rehearsed_issue_is_rehearsed_again_in_a_new_life(world: World) -> None:
    first = world.campaign("1")
    world.sees(first)
    world.files(first)
    with world.database.transaction() as session:
        outbox.finish(session, "e", "file:///tmp/e.json", None, world.at)
    assert world.bug().state == BugState.REPORTED.value
    assert world.files(first) is EffectState.SENT, "once for each life"
    world.moves(Event.PASSED)
    second = world.campaign("2", at=world.at)
    world.sees(second)
    assert world.bug().state == BugState.NEW.value
    assert world.files(second) is EffectState.INTENDED


def test_every_state_and_silence_has_its_reason(world: World) -> None:
    world.sees(world.campaign("1"), reason="it fails at base, too")
    world.sees(world.campaign("2"), reason="it fails at base, too")
    with world.database.reading() as session:
        told = [(act.what, act.why) for act in audit.of(session, TARGET, "bug:1")]
    assert told == [("new", "found: Add: crash"), ("silent", "it fails at base, too")]
