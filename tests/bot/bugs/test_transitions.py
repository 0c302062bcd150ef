"""Between campaigns: bugs are asked about, found mended, told of, and come back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.bugs import issue_events, transitions
from bot.bugs.retest_result import RetestResult
from bot.store import Database, audit, bugs, retests
from bot.store.bugs import Sighting
from bot.store.models import (
    Base,
    Bug,
    BugState,
    Campaign,
    Classification,
    Effect,
    Finding,
    Job,
    Proposal,
    Retest,
    Toolchain,
)
from bot.webhooks.intents import IssueIntent

TARGET = "octo/compiler"
START = datetime(2026, 11, 20, 12, tzinfo=UTC)
PASSES, FAILS, SICK = RetestResult(3, 0, 0, True), RetestResult(3, 3, 0, True), RetestResult(3, 0, 0, False)


@dataclass
class BugHarness:
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
                fields = {
                    "classification": Classification.ALREADY_BROKEN.value,
                    "verdict": "crash",
                    "signature": "s",
                }
                session.add(Finding(campaign_id=row.id, case_id="c" * 64, bug_id=1, **fields))
            transitions.request_retests(session, row.id, self.at)
            return row.id

    def retest(self, commit: str, seen: RetestResult, *, last: int | None = None) -> None:
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
                control_passed=seen.control_passed,
                at=self.at,
            )
            retests.add(session, row)
            transitions.apply_retest(
                session, row, seen, seen.describe("compiler 1.0"), self.at, last_campaign=last
            )

    def record_sighting(self, campaign: int) -> None:
        """A campaign saw it."""
        with self.database.transaction() as session:
            bugs.record_sighting(session, TARGET, "s", "Resize: wrong result", self.at, by=Sighting(campaign))

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
            issue_events.handle(session, intent)

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
            output = session.get_one(Effect, state.depends_on)
            wanted = "fails again" if state.payload["state"] == "open" else "fresh runs"
            return output.kind == "comment" and wanted in output.payload["body"]


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[BugHarness]:
    database = Database(f"sqlite:///{tmp_path}/assay.db")
    Base.metadata.create_all(database.engine)
    made = BugHarness(database)
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


def test_a_head_that_did_not_see_a_bug_is_asked_about_it_once(harness: BugHarness) -> None:
    assert harness.jobs() == []
    campaign = harness.campaign("2")
    (job,) = harness.jobs()
    assert (job.kind, job.bug_id, job.campaign_id) == ("retest", 1, campaign)
    assert job.arguments["commit"] == "2" * 40
    harness.retest("2", FAILS)
    harness.campaign("3", pull=9)
    assert len(harness.jobs()) == 1


def test_nobody_asks_about_what_people_ruled_on(harness: BugHarness) -> None:
    harness.issue("closed", "not_planned")
    assert (harness.bug.state, harness.bug.resolution) == (BugState.CLOSED.value, "invalid")
    harness.campaign("2")
    assert harness.jobs() == []


def test_a_fix_is_verified_on_two_commits_then_told_and_closed(harness: BugHarness) -> None:
    harness.retest("2", PASSES)
    assert harness.bug.state == BugState.FIXED.value
    assert harness.effects() == []
    harness.retest("2", PASSES)
    assert harness.bug.state == BugState.FIXED.value, "the same commit proves nothing more"
    harness.retest("3", PASSES)
    assert harness.bug.state == BugState.CLOSED.value
    (comment, text), closed = harness.effects()
    assert comment == "comment"
    assert f"`{'3' * 12}`" in str(text)
    assert "| 0 of 3 fresh runs |" in str(text)
    assert closed == ("issue_state", "closed")
    assert harness.explained()


@pytest.mark.parametrize(
    ("state", "proof", "wanted"),
    [
        ("merged", {"bad": None}, [{"run_number": 1}]),
        ("open", {"bad": None}, [{"run_number": 1, "rebase": True}]),
        ("refused", {"bad": None}, []),
        ("merged", {"bad": {"passed": 0}}, []),
    ],
)
def test_a_test_that_is_expected_to_fail_loses_its_mark_once(
    harness: BugHarness, state: str, proof: dict[str, object], wanted: list[dict[str, object]]
) -> None:
    with harness.database.transaction() as session:
        row = Proposal(
            target=TARGET, signature="s", effect="e", branch="b", path="p", test="test_a", writer="pytorch",
            state=state, number=9, proof=proof, created_at=START, updated_at=START,
        )  # fmt: skip
        session.add(row)
    for commit in "23":
        harness.campaign(commit)
        harness.retest(commit, PASSES)
    assert [one.arguments for one in harness.jobs() if one.kind == "propose"] == wanted


def test_what_fails_in_between_begins_anew(harness: BugHarness) -> None:
    harness.retest("2", PASSES)
    harness.retest("3", FAILS)
    assert (harness.bug.state, harness.bug.reason) == (
        BugState.REPORTED.value,
        "fails in 3 of 3 fresh runs on compiler 1.0",
    )
    harness.retest("4", PASSES)
    assert harness.bug.state == BugState.FIXED.value


def test_an_older_build_that_passes_does_not_mend_what_a_newer_one_showed_since(harness: BugHarness) -> None:
    """Its retest waited while the next campaign ran, or took so long."""
    harness.campaign("2")
    harness.record_sighting(harness.campaign("3", sees=True))
    harness.retest("2", PASSES)
    assert harness.bug.state == BugState.REPORTED.value
    with harness.database.reading() as session:
        last = audit.of(session, TARGET, "bug:1")[-1]
    assert last.action == "undecided"
    assert "a later campaign saw it" in last.reason
    harness.campaign("4")
    harness.retest("4", PASSES)
    assert harness.bug.state == BugState.FIXED.value


def test_an_older_build_that_fails_does_not_take_back_that_a_newer_one_passed(harness: BugHarness) -> None:
    """Its retest had to wait for the network."""
    for head in "23":
        harness.campaign(head)
    harness.retest("3", PASSES)
    assert harness.bug.state == BugState.FIXED.value
    harness.retest("2", FAILS)
    assert harness.bug.state == BugState.FIXED.value
    harness.campaign("4")
    harness.retest("4", FAILS)
    assert harness.bug.state == BugState.REPORTED.value


def test_a_sick_build_says_nothing(harness: BugHarness) -> None:
    harness.retest("2", SICK)
    assert harness.bug.state == BugState.REPORTED.value
    with harness.database.reading() as session:
        (act,) = audit.of(session, TARGET, "bug:1")
    assert act.action == "undecided"


def test_what_comes_back_opens_its_issue_again_and_says_where(harness: BugHarness) -> None:
    for commit in "23":
        harness.retest(commit, PASSES)
    harness.at += timedelta(days=1)
    with harness.database.transaction() as session:
        campaign = world_campaign(session)
        bug = session.get_one(Bug, 1)
        before = BugState(bug.state)
        bugs.record_sighting(session, TARGET, "s", "Resize: wrong result", harness.at)
        transitions.handle_sighting(session, bug, before, campaign, harness.at)
    assert harness.bug.state == BugState.REPORTED.value
    states = [action for kind, action in harness.effects() if kind == "issue_state"]
    assert states == ["open"]
    assert harness.explained()
    assert any("fails again" in str(action) for kind, action in harness.effects() if kind == "comment")


def world_campaign(session: object) -> Campaign:
    found = session.query(Campaign).first()  # type: ignore[attr-defined]
    assert isinstance(found, Campaign)
    return found


@pytest.mark.parametrize(
    ("action", "reason", "state", "resolution"),
    [
        ("closed", "completed", BugState.CLOSED, ""),
        ("closed", "not_planned", BugState.CLOSED, "invalid"),
        ("deleted", "", BugState.CLOSED, "invalid"),
        ("labeled", "", BugState.REPORTED, ""),
    ],
)
def test_what_people_do_to_our_issue(
    harness: BugHarness, action: str, reason: str, state: BugState, resolution: str
) -> None:
    harness.issue(action, reason)
    assert (harness.bug.state, harness.bug.resolution) == (state.value, resolution)


def test_who_opens_it_again_takes_the_ruling_back(harness: BugHarness) -> None:
    harness.issue("closed", "not_planned")
    harness.issue("reopened")
    assert (harness.bug.state, harness.bug.resolution) == (BugState.REPORTED.value, "")


def test_an_event_that_comes_late_takes_nothing_back(harness: BugHarness) -> None:
    """Its delivery failed; it was asked for again after the next one had come."""
    closed = harness.at
    harness.at += timedelta(minutes=1)
    harness.issue("reopened")
    harness.issue("closed", "not_planned", at=closed)
    assert (harness.bug.state, harness.bug.resolution) == (BugState.REPORTED.value, "")
    harness.issue("deleted", at=closed)
    assert harness.bug.state == BugState.CLOSED.value, "what is gone stays so"


def test_our_own_closing_is_no_news(harness: BugHarness) -> None:
    harness.issue("closed", "completed", bot=True)
    assert harness.bug.state == BugState.REPORTED.value


def test_a_pass_on_a_commit_that_nobody_tested_is_no_news_where_the_bug_was_seen_meanwhile(
    harness: BugHarness,
) -> None:
    """Nobody can tell whether such a commit, named by `/assay fixed-by`, is older or younger."""
    before = harness.bug.campaign_id
    assert before is not None
    harness.record_sighting(harness.campaign("b"))
    harness.retest("f", PASSES, last=before)
    assert harness.bug.state == BugState.REPORTED.value
    harness.retest("f", PASSES)
    assert harness.bug.state == BugState.FIXED.value


def test_a_campaign_that_ends_after_a_later_one_is_not_the_last_that_saw_the_bug(harness: BugHarness) -> None:
    """Else a pass on a commit between the two would say that the bug is mended."""
    older, later = harness.campaign("b"), harness.campaign("d")
    seen = harness.bug.seen
    harness.record_sighting(later)
    harness.record_sighting(older)
    assert (harness.bug.campaign_id, harness.bug.seen) == (later, seen + 2)
