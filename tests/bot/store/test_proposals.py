"""Which tests may be proposed, and what became of each."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.store import Database, Session, bugs, proposals
from bot.store.models import Base, BugState, Effect, Proposal

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> Database:
    made = Database(f"sqlite:///{tmp_path}/assay.db")
    Base.metadata.create_all(made.engine)
    return made


def add(session: Session, signature: str, number: int | None = None) -> Proposal:
    row = Proposal(
        target="o/n", signature=signature, effect=f"key-{signature}", branch="b", path="tests/test_a.py",
        test="test_a", writer="pytest-function", created_at=NOW, updated_at=NOW,
    )  # fmt: skip
    proposals.record(session, row)
    session.flush()
    if number is not None:
        proposals.mark_opened(session, row.effect, f"https://github.com/o/n/pull/{number}", number, NOW)
    return row


def obstacle(session: Session, signature: str, most: int = 1) -> str:
    return proposals.obstacle(session, "o/n", signature, most)


def test_one_is_open_in_a_repository(store: Database) -> None:
    with store.transaction() as session:
        assert obstacle(session, "a") == ""
        add(session, "a", 7)
        assert obstacle(session, "a") == "#7 proposes a test for this bug"
        assert obstacle(session, "b") == "#7 is open, and proposals.open is 1: merge or close it first"
        assert obstacle(session, "b", most=2) == ""
        assert proposals.obstacle(session, "o/other", "a", 1) == ""


def test_one_that_is_not_opened_yet_counts(store: Database) -> None:
    with store.transaction() as session:
        add(session, "a")
        assert obstacle(session, "b").startswith("test_a is open")


@pytest.mark.parametrize(
    ("state", "output"), [("closed", "is proposed for this bug again"), ("merged", "added a")]
)
def test_an_end_is_an_end_for_that_bug_only(state: str, output: str, store: Database) -> None:
    with store.transaction() as session:
        add(session, "a", 7)
        proposals.follow(session, "o/n", 7, state, NOW)
        assert output in obstacle(session, "a")
        assert obstacle(session, "b") == ""


@pytest.mark.parametrize("state", ["open", "merged", "closed"])
def test_a_merged_test_that_is_expected_to_fail_is_proposed_again_once_the_bug_is_fixed(
    state: str, store: Database
) -> None:
    with store.transaction() as session:
        bugs.record_sighting(session, "o/n", "a", "wrong values", NOW)
        row = add(session, "a", 7)
        row.proof = {"bad": None, "good": {}, "seconds": 1.0}
        proposals.follow(session, "o/n", 7, state, NOW)
        marked = proposals.expected_to_fail(session, "o/n", "a")
        assert (marked is row) == (state != "closed")
        assert obstacle(session, "a") != ""
        bug = bugs.find(session, "o/n", "a")
        assert bug is not None
        bug.state = BugState.FIXED.value
        assert (obstacle(session, "a") == "") == (state == "merged")
        row.proof = {"bad": {"passed": 0}, "good": {}, "seconds": 1.0}
        assert proposals.expected_to_fail(session, "o/n", "a") is None
        assert obstacle(session, "a") != ""


def test_the_tests_of_passing_cases_are_not_expected_to_fail(store: Database) -> None:
    with store.transaction() as session:
        add(session, "a", 7).proof = {"bad": None, "covers": []}
        assert proposals.expected_to_fail(session, "o/n", "a") is None


def test_the_newest_come_first(store: Database) -> None:
    with store.transaction() as session:
        rows = [add(session, one) for one in "abc"]
        assert proposals.newest(session, "o/n", 2) == [rows[2], rows[1]]


def test_a_reopened_one_is_open(store: Database) -> None:
    with store.transaction() as session:
        add(session, "a", 7)
        for state in ("closed", "open"):
            proposals.follow(session, "o/n", 7, state, NOW)
        assert obstacle(session, "b").startswith("#7 is open")


def test_what_github_refuses_may_be_proposed_again(store: Database) -> None:
    with store.transaction() as session:
        add(session, "a")
        proposals.mark_failed(session, "key-a", "lacks contents=write", NOW)
        assert obstacle(session, "a") == ""
        again = add(session, "a", 8)
        assert proposals.find(session, "o/n", "a") is again


def test_the_last_content_is_what_the_branch_got(store: Database) -> None:
    first, second = ({"commit": {"message": one}, "body": one} for one in ("first", "second"))
    with store.transaction() as session:
        row = add(session, "a", 7)
        assert proposals.last_content(session, row) is None, "its effect was deleted"
        assert proposals.of_pull(session, "o/n", 7) == [row]
        assert proposals.of_pull(session, "o/n", 8) == []
        payload = second | {"replaces": first, "fork": "bot/n"}
        effect = Effect(
            key="k",
            kind=proposals.BRANCH_REWRITE,
            target="o/n",
            payload=payload,
            state="sent",
            created_at=NOW,
        )
        session.add(effect)
        row.effect = effect.key
        session.flush()
        assert proposals.last_content(session, row) == second | {"fork": "bot/n"}
        for effect.state in ("failed", "held"):
            assert proposals.last_content(session, row) == first | {"fork": "bot/n"}


def test_a_batch_is_one_pull_request_and_its_end_holds_for_all_its_tests(store: Database) -> None:
    with store.transaction() as session:
        for signature in ("case1", "case2"):
            row = add(session, signature)
            row.effect, row.proof = "key-batch", {"covers": [["Elu", ""], ["Elu", signature]]}
        proposals.mark_opened(session, "key-batch", "https://github.com/o/n/pull/7", 7, NOW)
        assert [one.signature for one in proposals.of_pull(session, "o/n", 7)] == ["case1", "case2"]
        assert proposals.open_obstacle(session, "o/n", 1).startswith("#7 is open, and")
        assert proposals.open_obstacle(session, "o/n", 2) == ""
        assert proposals.declined(session, "o/n") == frozenset()
        proposals.follow(session, "o/n", 7, "closed", NOW)
        assert proposals.open_obstacle(session, "o/n", 1) == ""
        assert proposals.declined(session, "o/n") == {("Elu", ""), ("Elu", "case1"), ("Elu", "case2")}
        assert proposals.known_cases(session, "o/n") == {"case1", "case2"}
        failed = add(session, "case3")
        proposals.mark_failed(session, failed.effect, "no permission", NOW)
        assert "case3" not in proposals.known_cases(session, "o/n")
