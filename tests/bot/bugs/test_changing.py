"""Between campaigns: bugs are asked about, found mended, told of, and come back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.bugs import changing, intake
from bot.bugs.verdicts import Tally
from bot.store import Database, audit, bugs, retests
from bot.store.bugs import Sighting
from bot.store.models import (
    Base,
    Bug,
    BugState,
    Campaign,
    Effect,
    Finding,
    Job,
    Retest,
    Standing,
    Toolchain,
)
from bot.webhooks.intents import IssueIntent

TARGET = "octo/compiler"
START = datetime(2026, 11, 20, 12, tzinfo=UTC)
PASSES, FAILS, SICK = Tally(3, 0, 0, True), Tally(3, 3, 0, True), Tally(3, 0, 0, False)


@dataclass
class World:
    """A target with a campaign that reported one bug."""

    database: Database
    at: datetime = START

    def campaign(self, head: str, pull: int | None = None, sees: bool = False) -> int:
        with self.database.transaction() as session:
            row = Campaign(
                target=TARGET,
                head=head * 40,
                trigger=f"push {pull}",
                pull=pull,
                head_toolchain="t" * 64,
                config={"reports": {"mode": "auto", "close": True}},
                created_at=self.at,
                updated_at=self.at,
            )
            session.add(row)
            session.flush()
            if sees:
                fields = {"standing": Standing.ALREADY_BROKEN.value, "verdict": "crash", "signature": "s"}
                session.add(Finding(campaign_id=row.id, case_id="c" * 64, bug_id=1, **fields))
            changing.after_campaign(session, row.id, self.at)
            return row.id

    def retest(self, commit: str, seen: Tally, *, last: int | None = None) -> None:
        """`last` is the campaign that had seen the bug last when it began; the one that has by now."""
        last = last or self.bug.campaign_id
        with self.database.transaction() as session:
            row = Retest(
                bug_id=1,
                purpose="fix",
                commit=commit * 40,
                toolchain="t" * 64,
                runs=seen.runs,
                failed=seen.failed + seen.other,
                healthy=seen.healthy,
                at=self.at,
            )
            retests.add(session, row)
            changing.after_retest(session, row, seen, seen.told("compiler 1.0"), self.at, last=last)

    def see(self, campaign: int) -> None:
        """A campaign saw it."""
        with self.database.transaction() as session:
            bugs.see(session, TARGET, "s", "Resize: wrong result", self.at, by=Sighting(campaign))

    def issue(self, action: str, reason: str = "", bot: bool = False, *, at: datetime | None = None) -> None:
        intent = IssueIntent(
            target=TARGET,
            number=7,
            action=action,
            sender="maintainer",
            bot=bot,
            state="closed",
            state_reason=reason,
            updated_at=at or self.at,
        )
        with self.database.transaction() as session:
            intake.handle(session, intent)

    @property
    def bug(self) -> Bug:
        with self.database.reading() as session:
            return session.get_one(Bug, 1)

    def jobs(self) -> list[Job]:
        with self.database.reading() as session:
            return list(session.query(Job).order_by(Job.id))

    def effects(self) -> list[tuple[str, object]]:
        with self.database.reading() as session:
            rows = session.query(Effect).order_by(Effect.created_at, Effect.kind, Effect.key)
            return [(row.kind, row.payload.get("state") or row.payload.get("body")) for row in rows]

    def explained(self) -> bool:
        """Whether the issue's state waits for a comment of this bug that was said last."""
        with self.database.reading() as session:
            (state,) = session.query(Effect).filter(Effect.kind == "issue_state")
            said = session.get_one(Effect, state.after)
            wanted = "fails again" if state.payload["state"] == "open" else "fresh runs"
            return said.kind == "comment" and wanted in said.payload["body"]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    database = Database(f"sqlite:///{tmp_path}/assay.db")
    Base.metadata.create_all(database.engine)
    made = World(database)
    with database.transaction() as session:
        session.add(
            Toolchain(
                digest="t" * 64,
                backend="openvino",
                provisioner="release",
                label="compiler 1.0",
                python="python",
                versions={},
                requirements=[],
                created_at=START,
            )
        )
        session.flush()
        session.add(
            Bug(
                target=TARGET,
                signature="s",
                title="Resize: wrong result",
                state=BugState.REPORTED.value,
                issue=7,
                first_seen=START,
                last_seen=START,
                case_id="c" * 64,
                campaign_id=1,
            )
        )
    made.campaign("1", sees=True)
    yield made
    database.close()


def test_a_head_that_did_not_see_a_bug_is_asked_about_it_once(world: World) -> None:
    assert world.jobs() == []
    campaign = world.campaign("2")
    (job,) = world.jobs()
    assert (job.kind, job.bug_id, job.campaign_id) == ("retest", 1, campaign)
    assert job.arguments["commit"] == "2" * 40
    world.retest("2", FAILS)
    world.campaign("3", pull=9)
    assert len(world.jobs()) == 1


def test_nobody_asks_about_what_people_ruled_on(world: World) -> None:
    world.issue("closed", "not_planned")
    assert (world.bug.state, world.bug.ruling) == (BugState.CLOSED.value, "invalid")
    world.campaign("2")
    assert world.jobs() == []


def test_a_fix_is_verified_on_two_commits_then_told_and_closed(world: World) -> None:
    world.retest("2", PASSES)
    assert world.bug.state == BugState.FIXED.value
    assert world.effects() == []
    world.retest("2", PASSES)
    assert world.bug.state == BugState.FIXED.value, "the same commit proves nothing more"
    world.retest("3", PASSES)
    assert world.bug.state == BugState.CLOSED.value
    (comment, text), closed = world.effects()
    assert comment == "comment"
    assert f"`{'3' * 12}`" in str(text)
    assert "| 0 of 3 fresh runs |" in str(text)
    assert closed == ("issue_state", "closed")
    assert world.explained()


def test_what_fails_in_between_begins_anew(world: World) -> None:
    world.retest("2", PASSES)
    world.retest("3", FAILS)
    assert (world.bug.state, world.bug.reason) == (
        BugState.REPORTED.value,
        "fails in 3 of 3 fresh runs on compiler 1.0",
    )
    world.retest("4", PASSES)
    assert world.bug.state == BugState.FIXED.value


def test_an_older_build_that_passes_does_not_mend_what_a_newer_one_showed_since(world: World) -> None:
    """Its retest waited while the next campaign ran, or took so long."""
    world.campaign("2")
    world.see(world.campaign("3", sees=True))
    world.retest("2", PASSES)
    assert world.bug.state == BugState.REPORTED.value
    with world.database.reading() as session:
        last = audit.of(session, TARGET, "bug:1")[-1]
    assert last.what == "undecided"
    assert "a later campaign saw it" in last.why
    world.campaign("4")
    world.retest("4", PASSES)
    assert world.bug.state == BugState.FIXED.value


def test_an_older_build_that_fails_does_not_take_back_that_a_newer_one_passed(world: World) -> None:
    """Its retest had to wait for the network."""
    for head in "23":
        world.campaign(head)
    world.retest("3", PASSES)
    assert world.bug.state == BugState.FIXED.value
    world.retest("2", FAILS)
    assert world.bug.state == BugState.FIXED.value
    world.campaign("4")
    world.retest("4", FAILS)
    assert world.bug.state == BugState.REPORTED.value


def test_a_sick_build_says_nothing(world: World) -> None:
    world.retest("2", SICK)
    assert world.bug.state == BugState.REPORTED.value
    with world.database.reading() as session:
        (act,) = audit.of(session, TARGET, "bug:1")
    assert act.what == "undecided"


def test_what_comes_back_opens_its_issue_again_and_says_where(world: World) -> None:
    for commit in "23":
        world.retest(commit, PASSES)
    world.at += timedelta(days=1)
    with world.database.transaction() as session:
        campaign = world_campaign(session)
        bug = session.get_one(Bug, 1)
        before = BugState(bug.state)
        bugs.see(session, TARGET, "s", "Resize: wrong result", world.at)
        changing.seen(session, bug, before, campaign, world.at)
    assert world.bug.state == BugState.REPORTED.value
    states = [what for kind, what in world.effects() if kind == "issue_state"]
    assert states == ["open"]
    assert world.explained()
    assert any("fails again" in str(what) for kind, what in world.effects() if kind == "comment")


def world_campaign(session: object) -> Campaign:
    found = session.query(Campaign).first()  # type: ignore[attr-defined]
    assert isinstance(found, Campaign)
    return found


@pytest.mark.parametrize(
    ("action", "reason", "state", "ruling"),
    [
        ("closed", "completed", BugState.CLOSED, ""),
        ("closed", "not_planned", BugState.CLOSED, "invalid"),
        ("deleted", "", BugState.CLOSED, "invalid"),
        ("labeled", "", BugState.REPORTED, ""),
    ],
)
def test_what_people_do_to_our_issue(
    world: World, action: str, reason: str, state: BugState, ruling: str
) -> None:
    world.issue(action, reason)
    assert (world.bug.state, world.bug.ruling) == (state.value, ruling)


def test_who_opens_it_again_takes_the_ruling_back(world: World) -> None:
    world.issue("closed", "not_planned")
    world.issue("reopened")
    assert (world.bug.state, world.bug.ruling) == (BugState.REPORTED.value, "")


def test_an_event_that_comes_late_takes_nothing_back(world: World) -> None:
    """Its delivery failed; it was asked for again after the next one had come."""
    closed = world.at
    world.at += timedelta(minutes=1)
    world.issue("reopened")
    world.issue("closed", "not_planned", at=closed)
    assert (world.bug.state, world.bug.ruling) == (BugState.REPORTED.value, "")
    world.issue("deleted", at=closed)
    assert world.bug.state == BugState.CLOSED.value, "what is gone stays so"


def test_our_own_closing_is_no_news(world: World) -> None:
    world.issue("closed", "completed", bot=True)
    assert world.bug.state == BugState.REPORTED.value


def test_a_pass_on_a_commit_that_nobody_tested_is_no_news_where_the_bug_was_seen_meanwhile(
    world: World,
) -> None:
    """Nobody can tell whether such a commit, named by `/assay fixed-by`, is older or younger."""
    before = world.bug.campaign_id
    assert before is not None
    world.see(world.campaign("b"))
    world.retest("f", PASSES, last=before)
    assert world.bug.state == BugState.REPORTED.value
    world.retest("f", PASSES)
    assert world.bug.state == BugState.FIXED.value


def test_a_campaign_that_ends_after_a_later_one_is_not_the_last_that_saw_the_bug(world: World) -> None:
    """Else a pass on a commit between the two would say that the bug is mended."""
    older, later = world.campaign("b"), world.campaign("d")
    seen = world.bug.seen
    world.see(later)
    world.see(older)
    assert (world.bug.campaign_id, world.bug.seen) == (later, seen + 2)
