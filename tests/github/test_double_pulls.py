"""Pull requests that follow their branches, comparisons that git computes, files read and written."""

from __future__ import annotations

import base64
import os
import subprocess
from pathlib import Path

import pytest

from tests.github.client import Client, as_installation
from tests.github.double import GitHubDouble
from tests.github.repository_double import RepositoryDouble

REPO = "/repos/octo/compiler"


@pytest.fixture
def client(hub: GitHubDouble, repository: RepositoryDouble) -> Client:
    return as_installation(hub, "octo")


def test_a_pull_request_follows_its_branch(client: Client, repository: RepositoryDouble) -> None:
    number = repository.open_pull({"op.cc": "1\n2\n3\n", "new.py": "x\n"}, author="ada", branch="ada/x")
    path = f"{REPO}/pulls/{number}"
    first = client.get(path)
    assert (first["additions"], first["deletions"], first["changed_files"]) == (2, 0, 2)
    assert (first["mergeable"], first["mergeable_state"], first["commits"]) == (True, "clean", 1)
    assert first["author_association"] == "FIRST_TIME_CONTRIBUTOR"
    head = repository.push_pull(number, {"new.py": None})
    second = client.get(path)
    assert (second["head"]["sha"], second["changed_files"], second["commits"]) == (head, 1, 2)
    assert [one["filename"] for one in client.get(f"{path}/files")] == ["op.cc"]
    assert client.get(f"{path}/files")[0]["patch"].startswith("@@")
    assert [one["sha"] for one in client.get(f"{path}/commits")][-1] == head
    assert [one["number"] for one in client.get(f"{REPO}/commits/{head}/pulls")] == [number]
    assert [one["number"] for one in client.get(f"{REPO}/pulls?head=octo:ada/x")] == [number]


def test_forks_push_into_the_base_repository(
    client: Client, hub: GitHubDouble, repository: RepositoryDouble, tmp_path: Path
) -> None:
    fork = repository.fork("eve")
    number = repository.open_pull({"op.cc": "evil\n"}, fork=fork, branch="evil")
    head = repository.push_pull(number, {"more.cc": "1\n"})
    seen = client.get(f"{REPO}/pulls/{number}")
    assert (seen["head"]["repo"]["full_name"], seen["head"]["sha"]) == ("eve/compiler", head)
    clone = ["git", "clone", "--quiet", "--filter=blob:none", f"{hub.git_url}/octo/compiler.git", "clone"]
    subprocess.run(clone, cwd=tmp_path, check=True)
    fetch = ["git", "fetch", "--quiet", "origin", head]
    subprocess.run(fetch, cwd=tmp_path / "clone", check=True)
    reported = [
        (one.event, one.action) for one in hub.deliveries.log if one.event in ("push", "pull_request")
    ]
    assert reported[-2:] == [
        ("pull_request", "opened"),
        ("pull_request", "synchronize"),
    ]  # these pushes send no events
    fork.delete()
    assert client.get(f"{REPO}/pulls/{number}")["head"]["repo"] is None


def test_conflicts_are_seen_and_merges_made(client: Client, repository: RepositoryDouble) -> None:
    clean = repository.open_pull({"docs/a.md": "b\n"}, branch="clean", author="ada")
    dirty = repository.open_pull({"op.cc": "mine\n"}, branch="dirty", author="bob")
    repository.commit({"op.cc": "theirs\n"})
    assert client.get(f"{REPO}/pulls/{dirty}")["mergeable_state"] == "dirty"
    sha = repository.merge_pull(clean)
    merged = client.get(f"{REPO}/pulls/{clean}")
    assert (merged["merged"], merged["merge_commit_sha"], merged["state"]) == (True, sha, "closed")
    assert repository.head() == sha
    assert [one["number"] for one in client.get(f"{REPO}/pulls")] == [dirty]
    again = repository.open_pull({"docs/a.md": "c\n"}, branch="again", author="ada")
    assert client.get(f"{REPO}/pulls/{again}")["author_association"] == "CONTRIBUTOR"


def test_closing_reopening_and_deleting_the_branch(client: Client, repository: RepositoryDouble) -> None:
    number = repository.open_pull({"op.cc": "3\n"})
    client.patch(f"{REPO}/pulls/{number}", {"state": "closed"})
    stays = client.get(f"{REPO}/pulls/{number}")["head"]["sha"]
    moved = repository.push_pull(number, {"op.cc": "4\n"})
    assert client.get(f"{REPO}/pulls/{number}")["head"]["sha"] == stays != moved
    repository.reopen_pull(number)
    assert client.get(f"{REPO}/pulls/{number}")["head"]["sha"] == moved
    repository.delete_branch("change")
    assert client.get(f"{REPO}/pulls/{number}")["state"] == "closed"
    assert client.ask("PATCH", f"{REPO}/pulls/{number}", {"state": "open"}).status_code == 422


def test_comparisons(client: Client, repository: RepositoryDouble) -> None:
    base = repository.head()
    head = repository.commit({"new.cc": "1\n"}, "topic")
    other = repository.commit({"docs/a.md": None})
    ahead = client.get(f"{REPO}/compare/{base}...{head}")
    assert (ahead["status"], ahead["ahead_by"], [one["status"] for one in ahead["files"]]) == (
        "ahead",
        1,
        ["added"],
    )
    apart = client.get(f"{REPO}/compare/main...topic")
    assert (apart["status"], apart["behind_by"], apart["merge_base_commit"]["sha"]) == ("diverged", 1, base)
    assert client.get(f"{REPO}/compare/{other}...main")["status"] == "identical"
    assert client.ask("GET", f"{REPO}/compare/main...absent").status_code == 404
    assert client.get(f"{REPO}/commits/main")["files"][0]["status"] == "removed"
    assert len(client.get(f"{REPO}/commits")) == 3
    assert client.ask("GET", f"{REPO}/commits/absent").status_code == 422


def test_branches_and_files(client: Client, hub: GitHubDouble, repository: RepositoryDouble) -> None:
    hub.accept("octo", **hub.hub.permissions | {"contents": "write"})
    writer = as_installation(hub, "octo")
    sha = repository.head()
    assert writer.post(f"{REPO}/git/refs", {"ref": "refs/heads/a/b", "sha": sha})["object"]["sha"] == sha
    assert writer.ask("POST", f"{REPO}/git/refs", {"ref": "refs/heads/a/b", "sha": sha}).status_code == 422
    content = base64.b64encode(b"assert True\n").decode()
    put = {"message": "Add a test", "content": content, "branch": "a/b"}
    assert writer.ask("PUT", f"{REPO}/contents/tests/test_x.py", put).status_code == 201
    read = writer.get(f"{REPO}/contents/tests/test_x.py?ref=a/b")
    assert base64.b64decode(read["content"]) == b"assert True\n"
    assert writer.ask("PUT", f"{REPO}/contents/tests/test_x.py", put).status_code == 422
    assert (
        writer.ask("PUT", f"{REPO}/contents/tests/test_x.py", put | {"sha": read["sha"]}).status_code == 200
    )
    assert writer.get(f"{REPO}/branches/a/b")["commit"]["commit"]["message"] == "Add a test"
    assert [one["name"] for one in writer.get(f"{REPO}/branches")] == ["a/b", "main"]
    opened = writer.post(f"{REPO}/pulls", {"title": "Test it", "head": "a/b", "base": "main"})
    assert opened["user"]["login"] == hub.bot
    assert writer.ask("PATCH", f"{REPO}/git/refs/heads/a/b", {"sha": sha}).status_code == 422
    writer.patch(f"{REPO}/git/refs/heads/a/b", {"sha": sha, "force": True})
    assert writer.get(f"{REPO}/git/ref/heads/a/b")["object"]["sha"] == sha
    assert writer.ask("DELETE", f"{REPO}/git/refs/heads/a/b").status_code == 204
    assert writer.ask("GET", f"{REPO}/contents/absent").status_code == 404


def test_clones_over_http_need_a_token_where_the_repository_is_private(
    hub: GitHubDouble, repository: RepositoryDouble, tmp_path: Path
) -> None:
    secret = hub.repository("octo/secret", private=True)
    secret.commit({"a": "1"})
    hub.repository("other/else")

    def heads(name: str, client: Client | None) -> bool:
        address = f"{hub.git_http_url}/{name}.git"
        if client is not None:
            token = client.authorization.partition(" ")[2]
            address = address.replace("://", f"://x-access-token:{token}@")
        command = ["git", "ls-remote", "--exit-code", address, "refs/heads/main"]
        environment = {"PATH": os.environ["PATH"], "GIT_TERMINAL_PROMPT": "0", "HOME": str(tmp_path)}
        return not subprocess.run(command, env=environment, capture_output=True, check=False).returncode

    assert heads(repository.name, None)
    assert not heads(secret.name, None)
    assert heads(secret.name, as_installation(hub, "octo"))
    assert not heads(secret.name, as_installation(hub, "octo", permissions={"issues": "read"}))
    assert not heads(secret.name, as_installation(hub, "other"))
    url = f"{hub.git_http_url}/{repository.name}.git"
    subprocess.run(["git", "clone", "--quiet", "--filter=blob:none", url, "clone"], cwd=tmp_path, check=True)
    assert (tmp_path / "clone" / "op.cc").read_text() == "1\n2\n"
