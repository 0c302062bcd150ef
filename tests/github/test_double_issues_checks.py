"""Issues, comments, labels, reactions and checks through the API."""

from __future__ import annotations

from typing import Any

import pytest

from tests.github.client import Client, as_installation
from tests.github.double import GitHubDouble
from tests.github.repository_double import RepositoryDouble

REPO = "/repos/octo/compiler"


@pytest.fixture
def client(hub: GitHubDouble, repository: RepositoryDouble) -> Client:
    return as_installation(hub, "octo")


def test_an_issue_lives(client: Client, hub: GitHubDouble, repository: RepositoryDouble) -> None:
    made = client.post(f"{REPO}/issues", {"title": "Crash", "body": "text", "labels": ["assay"]})
    path = f"{REPO}/issues/{made['number']}"
    assert made["user"]["login"] == hub.bot
    client.patch(path, {"state": "closed", "state_reason": "not_planned"})
    closed = client.get(path)
    assert (closed["state"], closed["state_reason"]) == ("closed", "not_planned")
    assert client.get(f"{REPO}/issues") == []
    assert [one["number"] for one in client.get(f"{REPO}/issues?state=all")] == [1]
    client.patch(path, {"state": "open", "title": "Crash again"})
    assert client.get("/search/issues?q=again+is:open+label:assay+in:title")["total_count"] == 1
    assert client.get("/search/issues?q=again+is:closed")["total_count"] == 0
    reported = [(one.event, one.action) for one in hub.deliveries.log if one.event == "issues"]
    assert reported == [
        ("issues", action) for action in ("opened", "labeled", "closed", "edited", "reopened")
    ]


def test_comments_and_reactions(client: Client, repository: RepositoryDouble) -> None:
    number = repository.open_issue("a", author="ada")
    made = client.post(f"{REPO}/issues/{number}/comments", {"body": "first"})
    theirs = repository.comment(number, "ada", "/assay help")
    changed = client.patch(f"{REPO}/issues/comments/{made['id']}", {"body": "second"})
    assert [one["body"] for one in client.get(f"{REPO}/issues/{number}/comments")] == [
        "second",
        "/assay help",
    ]
    assert client.get(f"{REPO}/issues/comments/{made['id']}") == changed
    reactions = f"{REPO}/issues/comments/{theirs}/reactions"
    assert client.ask("POST", reactions, {"content": "eyes"}).status_code == 201
    assert client.ask("POST", reactions, {"content": "eyes"}).status_code == 200  # never twice
    (eyes,) = client.get(reactions)
    assert client.ask("DELETE", f"{reactions}/{eyes['id']}").status_code == 204
    client.post(f"{REPO}/issues/{number}/reactions", {"content": "rocket"})
    assert client.get(f"{REPO}/issues/{number}/reactions")[0]["content"] == "rocket"
    assert client.ask("DELETE", f"{REPO}/issues/comments/{made['id']}").status_code == 204
    assert [one["id"] for one in client.get(f"{REPO}/issues/comments?since=2026-01-01T00:00:00Z")] == [theirs]


def test_labels_come_and_go(client: Client, repository: RepositoryDouble) -> None:
    number = repository.open_issue("a")
    client.post(f"{REPO}/labels", {"name": "topic: fuzzer", "color": "ff0000"})
    assert client.ask("POST", f"{REPO}/labels", {"name": "Topic: fuzzer"}).status_code == 422
    labels = f"{REPO}/issues/{number}/labels"
    assert len(client.post(labels, {"labels": ["topic: fuzzer", "new"]})) == 2
    assert client.ask("DELETE", f"{labels}/topic%3A%20fuzzer").status_code == 200
    assert [one["name"] for one in client.get(labels)] == ["new"]
    assert len(client.ask("PUT", labels, {"labels": ["other"]}).json()) == 1
    assert client.patch(f"{REPO}/labels/new", {"color": "00ff00"})["color"] == "00ff00"
    assert [one["name"] for one in client.get(f"{REPO}/labels")] == ["topic: fuzzer", "new", "other"]
    assert client.get(f"{REPO}/labels/new")["name"] == "new"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("issues", {"title": "t" * 257}),
        ("issues", {"title": " "}),
        ("issues", {"title": "t", "body": "b" * 65_537}),
        ("issues", {"title": "t", "labels": ["l" * 51]}),
        ("issues/1/comments", {"body": "b" * 65_537}),
        ("issues/1/comments", {"body": "  "}),
        ("labels", {"name": "l" * 51}),
    ],
)
def test_what_is_too_long_is_not_taken(
    path: str, body: dict[str, Any], client: Client, repository: RepositoryDouble
) -> None:
    repository.open_issue("a")
    answer = client.ask("POST", f"{REPO}/{path}", body)
    assert (answer.status_code, answer.json()["message"]) == (422, "Validation Failed")
    longest = {name: value[:50] if isinstance(value, str) else ["l"] for name, value in body.items()}
    fine = client.ask("POST", f"{REPO}/{path}", {name: value or "x" for name, value in longest.items()})
    assert fine.status_code == (201 if "".join(map(str, longest.values())).strip() else 422)


def test_repositories_that_do_not_take_everything(
    client: Client, hub: GitHubDouble, repository: RepositoryDouble
) -> None:
    repository.disable_issues()
    answer = client.ask("POST", f"{REPO}/issues", {"title": "a"})
    assert (answer.status_code, answer.json()["message"]) == (410, "Issues are disabled for this repo")
    number = repository.open_pull({"op.cc": "3\n"})
    client.post(f"{REPO}/issues/{number}/comments", {"body": "pull requests still take comments"})
    repository.archive()
    answer = client.ask("POST", f"{REPO}/issues/{number}/comments", {"body": "a"})
    assert (answer.status_code, answer.json()["message"]) == (403, "Repository was archived so is read-only.")
    assert client.get(REPO)["archived"] is True


def test_a_renamed_repository_redirects(client: Client, repository: RepositoryDouble) -> None:
    repository.rename("better")
    moved = client.ask("GET", f"{REPO}/issues?state=all")
    assert moved.status_code == 301
    assert client.ask("POST", f"{REPO}/issues", {"title": "a"}).status_code == 307
    assert client.get(moved.headers["location"].removeprefix(client.url)) == []
    assert client.get("/repos/octo/better")["full_name"] == "octo/better"
    repository.delete()
    assert client.ask("GET", "/repos/octo/better").status_code == 404


def annotation(line: int, **more: Any) -> dict[str, Any]:
    usual = {"path": "op.cc", "start_line": line, "end_line": line, "annotation_level": "notice"}
    return usual | {"message": "here"} | more


def test_a_check_run_grows(client: Client, hub: GitHubDouble, repository: RepositoryDouble) -> None:
    sha = repository.head()
    first = [annotation(line) for line in range(1, 51)]
    made = client.post(
        f"{REPO}/check-runs",
        {
            "name": "assay",
            "head_sha": sha,
            "status": "in_progress",
            "external_id": "key",
            "output": {"title": "t", "summary": "s", "annotations": first},
            "actions": [{"label": "Run again", "description": "Runs it again", "identifier": "rerun"}],
        },
    )
    path = f"{REPO}/check-runs/{made['id']}"
    output = {"title": "t", "summary": "s", "annotations": [annotation(51)]}
    done = client.patch(path, {"conclusion": "neutral", "output": output})
    assert (done["status"], done["output"]["annotations_count"]) == ("completed", 51)
    assert len(client.get(f"{path}/annotations?per_page=100")) == 51
    again = client.post(f"{REPO}/check-runs", {"name": "assay", "head_sha": sha})
    listed = f"{REPO}/commits/{sha}/check-runs?check_name=assay"
    assert [one["id"] for one in client.get(listed)["check_runs"]] == [again["id"]]
    assert client.get(f"{listed}&filter=all")["total_count"] == 2
    (suite,) = client.get(f"{REPO}/commits/main/check-suites")["check_suites"]
    assert client.get(f"{REPO}/check-suites/{suite['id']}")["latest_check_runs_count"] == 2
    repository.press(repository.check_runs[0], "rerun")
    repository.rerequest(repository.check_runs[0])
    reported = [one.action for one in hub.deliveries.log if one.event == "check_run"]
    assert reported == ["created", "completed", "created", "requested_action", "rerequested"]
    assert hub.deliveries.log[-1].payload["check_run"]["external_id"] == "key"


@pytest.mark.parametrize(
    "wrong",
    [
        {"output": {"title": "t", "summary": "s", "annotations": [annotation(n) for n in range(1, 51)] * 2}},
        {"output": {"title": "t", "summary": "s" * 65_536}},
        {"output": {"title": "t", "summary": "s", "text": "s" * 65_536}},
        {"output": {"title": "t", "summary": "s", "annotations": [annotation(1, title="t" * 256)]}},
        {"output": {"title": "t", "summary": "s", "annotations": [annotation(2, end_line=1)]}},
        {"status": "completed"},
        {"head_sha": "4" * 40},
    ],
)
def test_check_runs_that_github_refuses(
    wrong: dict[str, Any], client: Client, hub: GitHubDouble, repository: RepositoryDouble
) -> None:
    body = {"name": "assay", "head_sha": repository.head()} | wrong
    assert client.ask("POST", f"{REPO}/check-runs", body).status_code == 422
    assert repository.check_runs == []
    hub.violations.clear()  # some of it is in GitHub's description too


@pytest.mark.parametrize(("name", "most"), [("label", 20), ("description", 40), ("identifier", 20)])
def test_buttons_have_short_words(
    name: str, most: int, client: Client, hub: GitHubDouble, repository: RepositoryDouble
) -> None:
    button = {"label": "l", "description": "d", "identifier": "i"}
    body = {"name": "assay", "head_sha": repository.head()}

    def status(*buttons: dict[str, str]) -> int:
        return client.ask("POST", f"{REPO}/check-runs", body | {"actions": list(buttons)}).status_code

    assert status(button | {name: "x" * most}) == 201
    assert status(button | {name: "x" * (most + 1)}) == 422
    assert status(*[button] * 4) == 422
    hub.violations.clear()  # GitHub's description says so too
