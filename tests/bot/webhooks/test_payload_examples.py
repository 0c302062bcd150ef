"""GitHub's own examples of the events that are understood, and what they become."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cache
from typing import Any

import pytest

from bot.webhooks.events import names, parse_event
from bot.webhooks.intents import (
    CheckIntent,
    CiIntent,
    CommentIntent,
    InstallationIntent,
    Intent,
    IssueIntent,
    MergeGroupIntent,
    PullIntent,
    RepositoryIntent,
)
from tests.github_api import examples


@cache
def payloads() -> dict[str, list[dict[str, Any]]]:
    return examples.load()


def example(event: str, action: str, number: int = 0) -> dict[str, Any]:
    """GitHub's example of this event and action; a copy that may be changed."""
    found = [one for one in payloads()[event] if one.get("action") == action]
    copy: dict[str, Any] = json.loads(json.dumps(found[number]))
    return copy


def read(event: str, payload: dict[str, Any]) -> Intent:
    (intent,) = parse_event(event, json.dumps(payload).encode()).intents
    return intent


def test_every_example_is_understood_or_passed_over() -> None:
    found: Counter[str] = Counter()
    for event, each in payloads().items():
        for payload in each:
            meaning = parse_event(event, json.dumps(payload).encode())
            assert meaning.intents or meaning.note
            found["understood" if meaning.intents else "passed over"] += 1
    assert found == {"understood": 64, "passed over": 265}
    assert names() - set(payloads()) == {"installation_target"}, "of which GitHub gives no example"


def test_a_pull_request() -> None:
    assert read("pull_request", example("pull_request", "synchronize")) == PullIntent(
        target="Codertocat/Hello-World",
        github_id=186853002,
        installation=1,
        number=2,
        action="synchronize",
        head="ec26c3e57ca3a959ca5aad62de7213c562f8c821",
        base="f95f852bd8fca8fcc58a9a2d6c842781e32a215e",
        base_ref="master",
        head_repository="Codertocat/Hello-World",
        author="Codertocat",
        association="OWNER",
        draft=False,
        state="open",
        updated_at=datetime(2019, 5, 15, 15, 20, 33, tzinfo=UTC),
    )


def test_a_merged_one_a_deleted_fork_and_a_deleted_author() -> None:
    payload = example("pull_request", "closed")
    payload["pull_request"]["merged"] = True
    payload["pull_request"]["head"]["repo"] = None
    payload["pull_request"]["user"] = None
    intent = read("pull_request", payload)
    assert isinstance(intent, PullIntent)
    assert (intent.state, intent.head_repository, intent.author) == ("merged", "", "ghost")


@pytest.mark.parametrize(
    ("changes", "read_"), [({"base": {"ref": {"from": "dev"}}}, 1), ({"title": {"from": "x"}}, 0)]
)
def test_an_edited_pull_request_counts_where_its_base_is_another(changes: dict[str, Any], read_: int) -> None:
    payload = example("pull_request", "opened") | {"action": "edited", "changes": changes}
    assert len(parse_event("pull_request", json.dumps(payload).encode()).intents) == read_


def test_a_comment() -> None:
    assert read("issue_comment", example("issue_comment", "created")) == CommentIntent(
        target="Codertocat/Hello-World",
        github_id=186853002,
        comment=492700400,
        number=1,
        on_pull=False,
        author="Codertocat",
        bot=False,
        association="OWNER",
        body="You are totally right! I'll get this fixed right away.",
        written_at=datetime(2019, 5, 15, 15, 20, 21, tzinfo=UTC),
    )


def test_a_comment_on_a_pull_request_by_a_program() -> None:
    payload = example("issue_comment", "created")
    payload["issue"]["pull_request"] = {"url": "https://api.github.com/repos/Codertocat/Hello-World/pulls/1"}
    payload["comment"]["user"]["type"] = "Bot"
    intent = read("issue_comment", payload)
    assert isinstance(intent, CommentIntent)
    assert (intent.on_pull, intent.bot) == (True, True)


def test_issues() -> None:
    intent = read("issues", example("issues", "labeled"))
    assert isinstance(intent, IssueIntent)
    assert (intent.number, intent.state, intent.state_reason, intent.label) == (1, "open", "", "bug")
    deleted = read("issues", example("issues", "deleted"))
    assert isinstance(deleted, IssueIntent)
    assert (deleted.action, deleted.sender, deleted.bot) == ("deleted", "Codertocat", False)


def test_a_button_of_a_check_run() -> None:
    assert read("check_run", example("check_run", "requested_action")) == CheckIntent(
        target="electron/electron",
        github_id=9384267,
        installation=690857,
        action="lgtm|26764",
        head="5bd5f196a46b8222fb7484f05faba41a73cf34bd",
        external_id="",
        sender="codebytere",
        app=("25811",),
    )


def test_checks_asked_for_once_more() -> None:
    run = read("check_run", example("check_run", "rerequested"))
    suite = read("check_suite", example("check_suite", "rerequested"))
    assert isinstance(run, CheckIntent)
    assert isinstance(suite, CheckIntent)
    assert (run.action, suite.action, suite.external_id) == ("rerequested", "rerequested", "")
    assert suite.head == "ec26c3e57ca3a959ca5aad62de7213c562f8c821"


@pytest.mark.parametrize("event", ["check_suite", "workflow_run"])
def test_the_end_of_a_commits_ci(event: str) -> None:
    payload = example(event, "completed")
    ended = read(event, payload)
    assert isinstance(ended, CiIntent)
    assert ended.head == payload[event]["head_sha"]
    assert ended.target == payload["repository"]["full_name"]


def test_installations() -> None:
    created = read("installation", example("installation", "created"))
    assert isinstance(created, InstallationIntent)
    assert (created.id, created.account, created.permissions["issues"]) == (957387, "Codertocat", "write")
    assert [asdict(one) for one in created.added] == [
        {"name": "Codertocat/Hello-World", "github_id": 186853002, "private": False}
    ]
    assert created.updated_at == datetime.fromtimestamp(1557933591, UTC)
    deleted = read("installation", example("installation", "deleted"))
    assert isinstance(deleted, InstallationIntent)
    assert (deleted.added, len(deleted.removed)) == ((), 1)
    added = read("installation_repositories", example("installation_repositories", "added"))
    assert isinstance(added, InstallationIntent)
    assert [one.name for one in added.added] == ["Codertocat/Space"]


def test_a_renamed_account() -> None:
    payload = {
        "action": "renamed",
        "account": {"login": "new-name", "id": 5, "type": "Organization"},
        "changes": {"login": {"from": "old-name"}},
        "installation": {"id": 9, "node_id": "x"},
        "target_type": "Organization",
    }
    intent = read("installation_target", payload)
    assert isinstance(intent, InstallationIntent)
    assert (intent.id, intent.account, intent.before) == (9, "new-name", "old-name")


@pytest.mark.parametrize(
    ("action", "number", "before"),
    [
        ("renamed", 0, "Octocoders/Hello-World"),
        ("transferred", 0, "octocat/Hello-World"),
        ("privatized", 0, ""),
    ],
)
def test_repositories(action: str, number: int, before: str) -> None:
    intent = read("repository", example("repository", action, number))
    assert isinstance(intent, RepositoryIntent)
    assert (intent.action, intent.before, intent.default_branch) == (action, before, "master")


def test_a_merge_group() -> None:
    assert read("merge_group", example("merge_group", "checks_requested")) == MergeGroupIntent(
        target="octo-org/octo-repo",
        github_id=17273051,
        installation=1,
        head="2ffea6db159f6b6c47a24e778fb9ef40cf6b1c7d",
        base="380387fbc80638b734a49e1be1c4dfec1c01b33c",
        ref="refs/heads/gh-readonly-queue/main/pr-104-929f8209d40f77f4abc622a499c93a83babdbe64",
    )
