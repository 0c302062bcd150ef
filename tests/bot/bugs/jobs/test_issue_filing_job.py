"""The last look before an issue goes out: what keeps it here, and that it says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import cast

import pytest

from bot.bugs import issue_filing
from bot.commands.job_reply import post_job_reply
from bot.errors import RefusalError
from bot.jobs.job_context import GitHubReader as Asked
from bot.jobs.job_queue import JobQueue
from bot.jobs.registry import Lane
from bot.settings import Settings
from bot.store import Database, audit, bugs, campaigns, jobs, mutes, now, outbox
from bot.store.bugs import Sighting
from bot.store.models import Bug, BugState, Campaign, Effect, EffectState, Job, JobState, SuppressionCause
from bot.store.outbox import EffectDraft
from bot.worker import Worker
from tests.bot.bugs.jobs import real_bug
from tests.bot.bugs.jobs.real_bug import Found
from tests.bot.jobs import killing
from tests.bot.jobs.killing import START, TARGET


@dataclass
class GitHubReader(real_bug.GitHubReader):
    """Trouble instead of answers, where there is some."""

    head: str = "a" * 40
    trouble: Exception | None = None
    meanwhile: Callable[[], None] = lambda: None

    def branch_head(self, target: str, branch: str) -> str:
        head = super().branch_head(target, branch)
        self.meanwhile()
        return head

    def search_issues(self, target: str, words: str) -> Sequence[Found]:
        found = super().search_issues(target, words)
        if self.trouble is not None:
            raise self.trouble
        return found


class World:
    """A bug whose issue waits for its checks."""

    def __init__(self, folder: Path) -> None:
        self.settings = Settings(data_dir=folder, workers=1)
        folder.mkdir()
        killing.prepare(self.settings.database_url)
        self.database = Database(self.settings.database_url)
        self.github_reader = GitHubReader()
        with self.database.transaction() as session:
            jobs.complete(session.get_one(Job, 1), JobState.DONE, "", {}, START)
            bug = session.get_one(Bug, 1)
            bug.state, bug.issue, bug.title = BugState.NEW.value, None, "Add: crash while compiling"
        self.post()

    def post(self) -> None:
        """As a campaign does that sees the bug."""
        with self.database.transaction() as session:
            payload = {
                "title": "Add: crash while compiling",
                "body": "words\n\n<details><summary>Evidence</summary>\n\n</details>\n\n<!-- assay:e -->\n",
                "labels": [],
            }
            draft = EffectDraft(
                "issue",
                "e",
                TARGET,
                payload,
                "s",
                hold=issue_filing.CHECKING,
                cause=SuppressionCause.CHECKING,
            )
            posted = outbox.post(session, [draft], campaign_id=1, issues_per_day=5, at=START)
            issue_filing.request_all_checks(session, posted, [draft], START)

    def work(self, requested_by: str = "") -> Job:
        if requested_by:
            with self.database.transaction() as session:
                issue_filing.request_checks(session, "e", TARGET, bugs.of_id(session, 1), START, requested_by)
        worker = Worker(
            JobQueue(
                self.database,
                self.settings,
                killing.services(self.settings),
                Lane.LONG,
                github_reader=cast("Asked", self.github_reader),
                backoff=(),
                reply=post_job_reply,
            )
        )
        assert worker.run_once()
        with self.database.reading() as session:
            job = session.query(Job).filter(Job.kind == issue_filing.FILING).one()
            assert audit.of(session, TARGET, "bug:1")[-1].reason
        return job

    @property
    def effect(self) -> Effect:
        with self.database.reading() as session:
            return session.get_one(Effect, "e")

    @property
    def bug(self) -> Bug:
        with self.database.reading() as session:
            return session.get_one(Bug, 1)

    def kept(self) -> str:
        """Why the issue is still here."""
        assert self.effect.state == EffectState.HELD.value
        assert self.bug.reason == self.effect.reason
        return self.effect.reason


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "world")
    yield made
    made.database.close()


def test_what_is_still_there_goes_out(world: World) -> None:
    assert world.work().state == JobState.DONE.value
    assert world.effect.state == EffectState.PENDING.value
    assert world.github_reader.asked == ["crash while compiling"]
    above, _, below = world.effect.payload["body"].partition("<details>")
    assert f"### Which commit\n\nBrought by commit {'a' * 12}" in above
    assert "Evidence" in below
    assert world.effect.payload["body"].endswith("<!-- assay:e -->\n")
    assert world.bug.facts["bisection"]["commits"]["before"]["commit"] == "c" * 40


def test_the_newest_commit_is_asked_unless_it_builds_the_same(world: World) -> None:
    world.github_reader.head = "b" * 40
    world.work()
    assert world.effect.state == EffectState.PENDING.value


def test_what_the_newest_commit_passes_is_mended(world: World) -> None:
    world.github_reader.head = "c" * 40
    world.work(requested_by="ada")  # also where a person released it
    assert "passes in all of 3 fresh runs on openvino 2024.0.0" in world.kept()
    assert world.bug.state == BugState.FIXED.value


def seen_again(world: World) -> None:
    """A campaign of a later commit, which pins the bad release, sees the bug."""
    world.github_reader.meanwhile = lambda: None
    world.github_reader.head = "b" * 40
    with world.database.transaction() as session:
        first = campaigns.get(session, 1)
        later = Campaign(target=TARGET, head="b" * 40, ref=first.ref, trigger="push", state="done")
        later.config, later.base, later.head_toolchain = first.config, first.base, first.head_toolchain
        later.created_at = later.updated_at = now()
        session.add(later)
        session.flush()
        bugs.record_sighting(session, TARGET, "s", "Add", now(), by=Sighting(later.id))


def test_a_campaign_that_sees_the_bug_meanwhile_is_believed_more_than_the_look(world: World) -> None:
    """The newest commit passed when it was asked for; a push has brought the bug back since."""
    world.github_reader.head = "c" * 40
    world.github_reader.meanwhile = lambda: seen_again(world)
    assert world.work().state == JobState.PENDING.value
    assert (world.kept(), world.bug.state) == (issue_filing.CHECKING, BugState.HELD.value)
    assert world.work().state == JobState.DONE.value
    assert world.effect.state == EffectState.PENDING.value


def test_a_look_at_an_earlier_life_of_the_bug_is_looked_at_again(world: World) -> None:
    """What is known of its last life (the commit that brought it, say) must not be written into this one."""

    def mended_and_back() -> None:
        with world.database.transaction() as session:
            session.get_one(Bug, 1).state = BugState.FIXED.value
        seen_again(world)

    world.github_reader.meanwhile = mended_and_back
    assert world.work().state == JobState.PENDING.value
    assert bugs.occurrence(world.bug) == 2
    assert "bisection" not in world.bug.facts
    world.post()
    assert world.work().state == JobState.DONE.value
    assert world.effect.state == EffectState.PENDING.value


def test_what_is_on_github_already_waits_for_a_person(world: World) -> None:
    world.github_reader.issues = (Found(3, "Add: crash while compiling"),)
    world.work()
    assert world.kept().startswith("#3 is open with the same title")
    world.work(requested_by="ada")
    assert world.effect.state == EffectState.PENDING.value
    assert "#3" in world.effect.payload["body"]


def test_a_closed_one_is_only_named(world: World) -> None:
    world.github_reader.issues = (Found(3, "Add: crash while compiling", state="closed"),)
    world.work()
    assert world.effect.state == EffectState.PENDING.value
    assert "- #3: Add: crash while compiling (closed)" in world.effect.payload["body"]


def test_checks_that_fail_say_so_and_are_done_anew(world: World) -> None:
    world.github_reader.trouble = RefusalError("the token has expired")
    assert world.work().state == JobState.FAILED.value
    assert world.kept() == "could not be checked before it is filed: the token has expired"
    world.github_reader.trouble = None
    world.post()  # the next campaign that sees it
    world.work()
    assert world.effect.state == EffectState.PENDING.value


def test_the_days_quota_holds_for_what_was_being_checked(world: World) -> None:
    with world.database.transaction() as session:
        for number in range(5):
            row = Effect(key=f"other{number}", kind="issue", target=TARGET, payload={}, state="sent")
            row.created_at = now() - timedelta(minutes=1)
            session.add(row)
    world.work()
    assert world.kept().startswith("over quota: 5 issues in 24 hours")


def test_what_people_said_meanwhile_counts(world: World) -> None:
    with world.database.transaction() as session:
        end = now() + timedelta(days=1)
        mutes.add(session, TARGET, "Add*", end, "ada", "", START)
    world.work()
    assert "is muted by ada" in world.kept()


def test_a_bug_that_is_mended_meanwhile_is_not_filed(world: World) -> None:
    with world.database.transaction() as session:
        bug = session.get_one(Bug, 1)
        bug.state, bug.reason = BugState.FIXED.value, "it passes"
    world.work()
    assert world.effect.reason == "it is now fixed: it passes"


def test_where_it_goes_wrong_is_asked_first_and_told(world: World) -> None:
    facts = [
        {"what": "parts", "found": ["Fuse|Add"], "how": "left out, it passes", "confirmed": True},
        {"what": "stage", "found": ["@lowered"], "how": "not so afresh", "confirmed": False},
        {"what": "ablation", "found": [], "how": "no rung fails", "confirmed": None},
    ]
    with world.database.transaction() as session:
        bug = session.get_one(Bug, 1)
        bugs.set_fact(session, bug, "localization", {"facts": facts})
    assert world.work().state == JobState.DONE.value
    body = str(world.effect.payload["body"])
    assert "### Where in the compiler" in body
    assert "| parts | `Fuse\\|Add` | left out, it passes |" in body
    assert "lowered" not in body
    with world.database.transaction() as session:
        bug = session.get_one(Bug, 1)
        bug.case_id = "c" * 64
        issue_filing.request_checks(session, "e", TARGET, bug, START)
        asked = session.query(Job).filter(Job.kind == issue_filing.LOCALIZE).one()
        assert (asked.bug_id, asked.state) == (1, JobState.PENDING.value)
        assert jobs.of_key(session, asked.key) is not None


def test_who_waits_for_an_answer_gets_it_though_somebody_else_asks_too(world: World) -> None:
    """`/assay upstream` in an issue, then a press of the button while the first waits."""
    with world.database.transaction() as session:
        bug = session.get_one(Bug, 1)
        issue_filing.request_checks(session, "e", TARGET, bug, START, "ada", 7)
        issue_filing.request_checks(session, "e", TARGET, bug, START, "ben")
    assert world.work().arguments["number"] == 7
    with world.database.reading() as session:
        (answer,) = session.query(Effect).filter(Effect.kind == "comment")
        assert (answer.number, "checked: the bug is still there" in answer.payload["body"]) == (7, True)
