"""Every kind of effect, from the outbox to a GitHub over HTTP: what people there see in the end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bot.github.dry_run import DryRunSink
from bot.github.github_api import GitHubApi
from bot.github.identity import Credentials
from bot.github.limits import marker
from bot.github.live_sink import GitHubSink
from bot.github.outbox_queue import OutboxQueue
from bot.github.rate_limiter import RateLimiter
from bot.github.repositories import Repositories
from bot.store import audit, outbox
from bot.store.database import Database
from bot.store.outbox import EffectDraft
from bot.worker import Worker
from tests.bot.github.outbox_kit import campaign, database, post, row
from tests.github.double import GitHubDouble
from tests.github.repository_double import RepositoryDouble

NAME = "octo/compiler"


@pytest.fixture
def github(tmp_path: Path) -> Iterator[GitHubDouble]:
    with GitHubDouble(tmp_path) as made:
        yield made


@pytest.fixture
def repository(github: GitHubDouble) -> RepositoryDouble:
    made = github.repository(NAME, private=True)
    made.commit({"op.cc": "1\n"})
    return made


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Database]:
    made = database(tmp_path)
    campaign(made, target=NAME)
    yield made
    made.close()


@pytest.fixture
def hub(github: GitHubDouble, store: Database) -> Iterator[GitHubApi]:
    who = Credentials(app_id=github.app_id, private_key=github.private_key)
    made = GitHubApi(who, github.url, rate_limiter=RateLimiter(store, gap_s=0))
    yield made
    made.close()


@pytest.fixture
def publisher(store: Database, hub: GitHubApi, github: GitHubDouble, tmp_path: Path) -> Worker:
    return Worker(
        OutboxQueue(store, GitHubSink(hub), github.hub.world.clock, DryRunSink(tmp_path / "outbox"))
    )


def drain(publisher: Worker) -> None:
    while publisher.run_once():
        pass


def key(letter: str) -> str:
    return letter * 32


def draft(kind: str, letter: str, payload: dict[str, Any], **fields: Any) -> EffectDraft:
    if "body" in payload:
        payload = payload | {"body": f"{payload['body']}\n\n{marker(key(letter))}\n"}
    return EffectDraft(kind, key(letter), NAME, payload, **fields)


def run(sha: str, title: str, notes: int) -> EffectDraft:
    lines = [
        {"path": "op.cc", "start_line": n, "end_line": n, "annotation_level": "warning", "message": f"{n}"}
        for n in range(1, notes + 1)
    ]
    output = {"title": title, "summary": title, "annotations": lines}
    payload = {"name": "assay", "head_sha": sha, "status": "in_progress", "external_id": key("c")}
    return EffectDraft("check_run", key("c"), NAME, payload | {"output": output}, editable=True)


def test_every_kind(publisher: Worker, store: Database, repository: RepositoryDouble) -> None:
    number = repository.open_pull({"op.cc": "2\n"}, author="ada")
    requested = repository.comment(number, "ada", "/assay run")
    post(
        store,
        draft("reaction", "r", {"content": "eyes", "comment": requested}, urgent=True, mode="live"),
        run(repository.head("change"), "Running", 70),
        draft("sticky", "s", {"body": "one new bug"}, number=number, editable=True),
        draft("issue", "i", {"title": "Relu is wrong", "body": "NaN"}, signature="relu"),
        draft("comment", "m", {"body": "seen again"}, depends_on=key("i")),
        draft("labels", "l", {"labels": ["assay", "bug"]}, depends_on=key("i")),
        draft(
            "issue_state",
            "t",
            {"state": "closed", "state_reason": "completed"},
            depends_on=key("i"),
            editable=True,
        ),
    )
    drain(publisher)
    post(
        store,
        run(repository.head("change"), "Done", 120),
        draft("sticky", "s", {"body": "two new bugs"}, number=number, editable=True),
    )
    drain(publisher)
    seen = repository.told()
    (issue,) = [one for one in repository.issues if one.title == "Relu is wrong"]
    assert (issue.state, sorted(issue.labels)) == ("closed", ["assay", "bug"])
    assert {(on, body.partition("\n")[0]) for on, _, body in seen["comments"]} == {
        (number, "/assay run"),
        (number, "two new bugs"),
        (issue.number, "seen again"),
    }
    assert [content for _, _, content in seen["reactions"]] == ["eyes"]
    (check,) = repository.check_runs
    assert check.fields["output"]["title"] == "Done"
    assert sorted(int(one["message"]) for one in check.annotations) == list(range(1, 121))
    with store.reading() as session:
        assert [act.action for act in audit.of(session, NAME, f"effect:{key('s')}")] == ["sent", "sent"]


def test_a_renamed_repository_hears_us_all_the_same(
    publisher: Worker, store: Database, repository: RepositoryDouble
) -> None:
    post(store, draft("issue", "a", {"title": "before", "body": ""}, signature="a"))
    drain(publisher)
    repository.rename("translator")
    post(store, draft("issue", "b", {"title": "after", "body": ""}, signature="b"))
    drain(publisher)
    assert [one.title for one in repository.issues] == ["before", "after"]
    with store.reading() as session:
        (act,) = audit.of(session, NAME, f"effect:{key('b')}")
        assert act.evidence["now"] == "octo/translator"


def test_a_transferred_repository_and_an_app_installed_anew_hear_us(
    publisher: Worker, store: Database, repository: RepositoryDouble, github: GitHubDouble
) -> None:
    github.repository("acme/other")
    post(store, draft("issue", "a", {"title": "before", "body": ""}, signature="a"))
    drain(publisher)
    repository.transfer("acme")
    post(store, draft("issue", "b", {"title": "after", "body": ""}, signature="b"))
    drain(publisher)
    assert [one.title for one in repository.issues] == ["before", "after"], row(store, key("b")).reason


def refused(store: Database, publisher: Worker, letter: str) -> str:
    post(store, draft("issue", letter, {"title": letter, "body": ""}, signature=letter))
    drain(publisher)
    there = row(store, key(letter))
    assert there.state == "failed"
    return there.reason


def test_what_a_repository_refuses_says_what_to_do(
    publisher: Worker, store: Database, repository: RepositoryDouble
) -> None:
    repository.disable_issues()
    assert "issues switched off" in refused(store, publisher, "a")
    repository.archive()
    assert "Unarchive it" in refused(store, publisher, "b")


def test_a_permission_that_is_lacking_is_named(
    publisher: Worker, store: Database, repository: RepositoryDouble, github: GitHubDouble
) -> None:
    github.accept("octo", metadata="read", checks="write")
    assert "lacks a permission (issues=write)" in refused(store, publisher, "a")
    post(store, run(repository.head(), "Done", 1))
    drain(publisher)
    assert len(repository.check_runs) == 1, "what it does not lack goes on"


def test_a_private_repository_is_fetched_with_a_readers_token(
    hub: GitHubApi, repository: RepositoryDouble, github: GitHubDouble, tmp_path: Path
) -> None:
    mirrors = Repositories(github.git_url, tmp_path / "git", hub.git_token)
    assert mirrors.read(NAME, repository.head(), "op.cc") == b"1\n"
    assert mirrors.default_branch(NAME) == "main"


def test_rehearsals_write_every_content_down(
    store: Database, github: GitHubDouble, repository: RepositoryDouble, tmp_path: Path
) -> None:
    publisher = Worker(OutboxQueue(store, DryRunSink(tmp_path / "outbox")))
    for number, text in enumerate(("one", "two", "three"), start=1):
        its = draft("sticky", "s", {"body": text}, number=7, editable=True)
        post(store, its, replace(run("0" * 40, text, 60 * number)))
        drain(publisher)
    folder = tmp_path / "outbox" / NAME
    names = sorted(path.name for path in folder.glob("*.json"))
    assert names == [
        f"{kind}-{key(letter)}{revision}.json"
        for kind, letter in (("check_run", "c"), ("sticky", "s"))
        for revision in (".2", ".3", "")
    ]
    assert (
        '"path": "/repos/octo/compiler/issues/comments/{id}"'
        in (folder / f"sticky-{key('s')}.3.json").read_text()
    )
    assert '"then"' in (folder / f"check_run-{key('c')}.json").read_text()
    assert (folder / f"sticky-{key('s')}.2.md").read_text() == f"two\n\n{marker(key('s'))}\n"
    assert not github.seen


def test_the_kill_switch_stops_the_next_effect(
    publisher: Worker, store: Database, github: GitHubDouble, repository: RepositoryDouble
) -> None:
    post(store, draft("issue", "a", {"title": "t", "body": ""}, signature="a"))
    with store.transaction() as session:
        outbox.enable_kill_switch(session, NAME, "too loud", github.hub.world.clock())
    drain(publisher)
    assert repository.issues == []
