"""Exactly once, for what is changed in place too: whatever dies, fails or is revised in between."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.github.dry_run import DryRunSink
from bot.github.github_api import GitHubApi
from bot.github.identity import Credentials
from bot.github.limits import marker
from bot.github.live_sink import GitHubSink
from bot.github.outbox_queue import LEASE, OutboxQueue
from bot.github.rate_limiter import RateLimiter
from bot.store import audit, outbox
from bot.store.database import Database
from bot.store.models import Effect
from bot.store.outbox import EffectDraft
from bot.worker import Worker
from tests.bot.github import app_kit
from tests.bot.github.fake_github import TARGET, TROUBLE, FakeGitHub, ProcessKilled
from tests.bot.github.outbox_kit import Clock, campaign, database, post, row
from tests.bot.reports import sample_campaign

PULL = 7


class PublisherHarness:
    """A publisher between a database and a GitHub in memory, under a clock turned by hand."""

    def __init__(self, folder: Path) -> None:
        self.store: Database = database(folder)
        campaign(self.store)
        self.clock, self.world = Clock(), FakeGitHub()
        rate_limiter = RateLimiter(
            self.store, clock=self.clock, sleep=lambda s: self.clock.advance(seconds=s)
        )
        github_api = GitHubApi(
            app_kit.credentials(), rate_limiter=rate_limiter, transport=self.world, clock=self.clock
        )
        self.publisher = Worker(
            OutboxQueue(self.store, GitHubSink(github_api), self.clock, DryRunSink(folder / "outbox"))
        )

    def post(self, draft: EffectDraft) -> None:
        post(self.store, draft, at=self.clock())

    def step(self) -> bool:
        """One effect; the death of the process leaves its row as it is."""
        try:
            return self.publisher.run_once()
        except ProcessKilled:
            return True

    def drain(self, hours: int = 48) -> None:
        for _ in range(hours):
            while self.step():
                pass
            self.clock.now += LEASE
            self.clock.advance(hours=1)
            with self.store.reading() as session:
                if not outbox.has_unsent(session):
                    return
        raise AssertionError("something is never sent")


@contextmanager
def harness() -> Iterator[PublisherHarness]:
    with TemporaryDirectory() as folder:
        made = PublisherHarness(Path(folder))
        yield made
        made.store.close()


def sticky(content: str) -> EffectDraft:
    return EffectDraft(
        "sticky", "5" * 32, TARGET, {"body": f"{content}\n{marker('5' * 32)}"}, number=PULL, editable=True
    )


def note(line: int) -> dict[str, Any]:
    where = {"path": "src/pass.cc", "start_line": line, "end_line": line}
    return {**where, "annotation_level": "warning", "message": f"line {line}"}


def check(content: str, notes: int = 0) -> EffectDraft:
    output = {
        "title": content,
        "summary": content,
        "annotations": [note(line) for line in range(1, notes + 1)],
    }
    payload = {
        "name": "assay",
        "head_sha": sample_campaign.HEAD,
        "status": "in_progress",
        "external_id": "c" * 32,
    }
    return EffectDraft("check_run", "c" * 32, TARGET, {**payload, "output": output}, editable=True)


#: What happens: a new content, a look at the outbox, a while, or trouble for the next write.
EVENTS = st.lists(st.sampled_from(["revise", "step", "lease", "no trouble", *TROUBLE]), max_size=14)


@settings(max_examples=25)
@given(EVENTS, st.sampled_from(["sticky", "check_run"]))
def test_one_thing_with_the_last_content_whatever_happens(events: list[str], kind: str) -> None:
    with harness() as its:
        revision = 0
        for event in ["revise", *events, "revise"]:
            if event == "revise":
                revision += 1
                notes = 60 * (revision % 2) + revision
                its.post(sticky(str(revision)) if kind == "sticky" else check(str(revision), notes))
            elif event == "step":
                its.step()
            elif event == "lease":
                its.clock.now += LEASE
            else:
                its.world.trouble.append(event)
        its.drain()
        made = list(its.world.comments.values() if kind == "sticky" else its.world.runs.values())
        assert len(made) == 1
        if kind == "sticky":
            assert made[0]["body"].startswith(f"{revision}\n")
            return
        lines = [one["start_line"] for one in made[0]["notes"]]
        assert made[0]["output"]["summary"] == str(revision)
        assert len(lines) == len(set(lines))
        assert set(range(1, 60 * (revision % 2) + revision + 1)) <= set(lines)


@settings(max_examples=20)
@given(st.lists(st.sampled_from(["step", "lease", *TROUBLE]), max_size=12), st.booleans())
def test_what_is_said_once_is_said_once(events: list[str], comment: bool) -> None:
    key = "e" * 32
    body = {"body": marker(key)}
    draft = EffectDraft("comment", key, TARGET, body, number=PULL)
    if not comment:
        draft = EffectDraft("issue", key, TARGET, {"title": "t", **body}, signature="s")
    with harness() as its:
        its.post(draft)
        for event in events:
            if event == "step":
                its.step()
            elif event == "lease":
                its.clock.now += LEASE
            else:
                its.world.trouble.append(event)
        its.drain()
        assert len(its.world.comments) + len(its.world.issues) == 1


@pytest.mark.parametrize("ending", ["no trouble", "dies after", "no answer, arrived", "throttled"])
def test_a_content_that_is_posted_while_another_is_on_its_way_is_sent_next(ending: str) -> None:
    with harness() as its:
        its.world.meanwhile = lambda: its.post(sticky("2"))
        its.world.trouble.append(ending)
        its.post(sticky("1"))
        its.drain()
        assert [one["body"][:1] for one in its.world.comments.values()] == ["2"]
        its.world.meanwhile = lambda: its.post(sticky("4"))
        its.world.trouble.append(ending)
        its.post(sticky("3"))
        its.drain()
        assert [one["body"][:1] for one in its.world.comments.values()] == ["4"]
        there = row(its.store, sticky("").key)
        assert (there.state, there.revision, there.sent_revision) == ("sent", 4, 4)


def test_fifty_contents_are_one_comment_and_few_requests() -> None:
    with harness() as its:
        for revision in range(50):
            its.post(sticky(str(revision)))
            if revision in (0, 25):
                its.drain()
        its.drain()
        assert [one["body"][:2] for one in its.world.comments.values()] == ["49"]
        assert [path.partition(" ")[0] for path in its.world.writes() if "/issues/" in path] == [
            "POST",
            "PATCH",
            "PATCH",
        ]


def test_a_comment_of_ours_is_found_when_the_outbox_was_lost() -> None:
    with harness() as its:
        its.post(sticky("before"))
        its.drain()
        with its.store.transaction() as session:
            session.delete(session.get_one(Effect, sticky("").key))
        quoting = {"id": 1, "on": PULL, "user": {"login": "somebody"}, "body": sticky("").payload["body"]}
        its.world.comments = {1: quoting, **its.world.comments}
        its.post(sticky("after"))
        its.drain()
        assert [one["body"].split("\n")[0] for one in its.world.comments.values()] == ["", "after"]


def test_what_a_person_deleted_is_not_made_again_unless_released() -> None:
    with harness() as its:
        its.post(sticky("1"))
        its.drain()
        its.world.comments.clear()
        its.post(sticky("2"))
        its.drain()
        its.post(sticky("3"))
        its.drain()
        there = row(its.store, sticky("").key)
        assert (its.world.comments, there.state) == ({}, "failed")
        assert "somebody deleted this sticky" in there.reason
        with its.store.reading() as session:
            assert [act.action for act in audit.of(session, TARGET, f"effect:{there.key}")] == [
                "sent",
                "refused",
            ]
        with its.store.transaction() as session:
            outbox.approve(session, there.key)
        its.drain()
        assert [one["body"][:1] for one in its.world.comments.values()] == ["3"]


def test_a_repository_that_is_gone_is_no_deleted_comment() -> None:
    with harness() as its:
        its.post(sticky("1"))
        its.drain()
        its.world.gone = True
        its.post(sticky("2"))
        its.drain()
        assert "the repository is gone or renamed" in row(its.store, sticky("").key).reason


def test_a_repository_that_another_installation_has_is_found_again() -> None:
    with harness() as its:
        its.post(sticky("1"))
        its.step()
        its.world.installation = 4712
        its.post(sticky("2"))
        its.step()
        assert [one["body"][:1] for one in its.world.comments.values()] == ["2"]
        assert row(its.store, sticky("").key).state == "sent"


def test_annotations_go_fifty_at_a_time_each_once() -> None:
    with harness() as its:
        its.post(check("first", 120))
        its.drain()
        its.post(check("second", 130))
        its.drain()
        (run,) = its.world.runs.values()
        assert [one["start_line"] for one in run["notes"]] == list(range(1, 131))
        assert run["output"]["summary"] == "second"
        assert [path.partition(" ")[0] for path in its.world.writes() if "check-runs" in path] == [
            "POST",
            "PATCH",
            "PATCH",
            "PATCH",
        ]


def test_a_limit_between_two_batches_makes_no_second_run() -> None:
    with harness() as its:
        its.post(check("first", 120))
        its.world.trouble += ["no trouble", "throttled"]
        its.drain()
        (run,) = its.world.runs.values()
        assert [one["start_line"] for one in run["notes"]] == list(range(1, 121))


def test_an_effect_waits_for_the_issue_it_belongs_to() -> None:
    key = "b" * 32
    with harness() as its:
        its.post(EffectDraft("comment", key, TARGET, {"body": marker(key)}, depends_on="a" * 32))
        its.post(
            EffectDraft("labels", "1" * 32, TARGET, {"labels": ["assay", "new one"]}, depends_on="a" * 32)
        )
        its.post(
            EffectDraft(
                "issue_state",
                "2" * 32,
                TARGET,
                {"state": "closed", "state_reason": "completed"},
                depends_on="a" * 32,
                editable=True,
            )
        )
        its.step()
        assert its.world.writes() == []
        its.world.labels["assay"] = {"name": "assay"}
        its.post(
            EffectDraft("issue", "a" * 32, TARGET, {"title": "t", "body": marker("a" * 32)}, signature="s")
        )
        its.drain()
        (issue,) = its.world.issues.values()
        assert (issue["labels"], issue["state"]) == (["assay", "new one"], "closed")
        assert [one["on"] for one in its.world.comments.values()] == [1]
        assert its.world.writes("/labels").count(f"POST /repos/{TARGET}/labels") == 1


def test_what_belongs_to_a_rehearsed_issue_is_not_sent() -> None:
    with harness() as its:
        its.post(EffectDraft("issue", "a" * 32, TARGET, {"title": "t"}, signature="s", mode="dry-run"))
        its.post(
            EffectDraft("comment", "b" * 32, TARGET, {"body": "hello"}, depends_on="a" * 32, mode="live")
        )
        its.drain()
        assert its.world.writes("/comments") == []
        assert "written down in dry-run" in row(its.store, "b" * 32).reason


def test_a_reaction_is_one_however_often_it_is_sent() -> None:
    with harness() as its:
        its.world.comments[12] = {"id": 12, "on": PULL}
        its.world.trouble.append("dies after")
        its.post(
            EffectDraft(
                "reaction", "r" * 32, TARGET, {"content": "eyes", "comment": 12}, urgent=True, mode="live"
            )
        )
        its.drain()
        assert its.world.reactions == [(12, "eyes")]
        assert len(its.world.writes("/reactions")) == 2
        its.post(EffectDraft("reaction", "q" * 32, TARGET, {"content": "eyes", "comment": 13}))
        its.drain()
        assert "somebody deleted this reaction or its parent" in row(its.store, "q" * 32).reason


def test_a_pause_stops_one_account_and_urgent_ones_go_first() -> None:
    with harness() as its:
        its.post(check("first"))
        its.post(replace(sticky("urgent"), urgent=True))
        its.world.trouble.append("throttled")
        assert its.step()
        assert not its.step(), "GitHub asked for a pause: nothing else is tried"
        its.post(EffectDraft("comment", "b" * 32, TARGET, {"body": "x"}, number=1, mode="dry-run"))
        assert its.step(), "what is written down waits for nobody"
        assert row(its.store, sticky("").key).attempts == 0
        its.clock.advance(seconds=8)
        assert its.step()
        assert (len(its.world.comments), len(its.world.runs)) == (1, 0)
        its.drain()
        assert len(its.world.runs) == 1


@pytest.mark.parametrize("content", ["success", "failure", None])
def test_a_token_gets_a_status_instead_of_a_check_run(content: str | None, tmp_path: Path) -> None:
    store, clock, world = database(tmp_path), Clock(), FakeGitHub()
    campaign(store)
    github_api = GitHubApi(Credentials(token="t"), transport=world, clock=clock)
    draft = check("Nothing new", 3)
    payload = draft.payload | ({"conclusion": content, "status": "completed"} if content else {})
    post(store, replace(draft, payload=payload))
    assert Worker(
        OutboxQueue(store, GitHubSink(github_api), clock, DryRunSink(tmp_path / "outbox"))
    ).run_once()
    (status,) = world.statuses
    assert (status["state"], status["description"]) == (content or "pending", "Nothing new")
    assert world.runs == {}
