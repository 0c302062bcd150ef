"""Routes of the Git Data API: commits and trees. References are in `repositories.py`."""

from __future__ import annotations

from typing import Any

from tests.github.calls import Call, RefusedError, RouteResponse, invalid, not_found, route
from tests.github.schema_completion import complete
from tests.github.state import stamp

_GIT = "/repos/{owner}/{repo}/git"


def _commit(call: Call, sha: str) -> Any:
    found = call.repository.git.describe(sha)
    url = f"{call.hub.url}/repos/{call.repository.full_name}/git"
    who = {
        "name": found.author,
        "email": f"{found.author}@example.org",
        "date": stamp(call.hub.world.clock()),
    }
    shown = {
        "sha": found.sha,
        "url": f"{url}/commits/{found.sha}",
        "author": who,
        "committer": who,
        "message": found.message,
        "tree": {"sha": found.tree, "url": f"{url}/trees/{found.tree}"},
        "parents": [
            {"sha": one, "url": f"{url}/commits/{one}", "html_url": f"{url}/commits/{one}"}
            for one in found.parents
        ],
    }
    return complete("git-commit", shown)


def _author(call: Call) -> dict[str, str]:
    given = call.body.get("author") or {}
    return {"author": given.get("name", call.actor.writer.login), "email": given.get("email", "")}


@route("GET", f"{_GIT}/commits/{{commit_sha}}", "contents=read")
def commit(call: Call) -> RouteResponse:
    sha = call.repository.git.resolve(call.parameters["commit_sha"])
    if not sha:
        raise not_found()
    return RouteResponse(200, _commit(call, sha))


@route("POST", f"{_GIT}/trees", "contents=write")
def create_tree(call: Call) -> RouteResponse:
    """A tree from `base_tree`, a tree's id, and files given by their content."""
    base, entries = call.body.get("base_tree", ""), call.body["tree"]
    git = call.repository.git
    if base and git.kind(base) != "tree":
        raise RefusedError(422, "base_tree is not a valid tree oid")
    files = {}
    for entry in entries:
        if entry.get("mode") not in ("100644", "100755") or entry.get("type") != "blob":
            raise RefusedError(422, "tree.mode contains an invalid mode value")
        files[entry["path"]] = entry["content"]
    sha = git.tree_with(base, files)
    url = f"{call.hub.url}/repos/{call.repository.full_name}/git/trees/{sha}"
    return RouteResponse(201, complete("git-tree", {"sha": sha, "url": url, "truncated": False, "tree": []}))


@route("POST", f"{_GIT}/commits", "contents=write")
def create_commit(call: Call) -> RouteResponse:
    """A commit on no branch. Without an author, {"name", "email"}, it is the token's account."""
    body, git = call.body, call.repository.git
    if git.kind(body["tree"]) != "tree":
        raise RefusedError(422, "Tree SHA does not exist")
    parents = body.get("parents", [])
    if any(git.resolve(one) != one for one in parents):
        raise RefusedError(422, "Parent SHA does not exist or is not a commit object")
    if not body["message"].strip():
        raise invalid("Commit", "message", code="missing_field")
    sha = git.commit_of(body["tree"], parents, body["message"], **_author(call))
    return RouteResponse(201, _commit(call, sha))
