"""Routes of repositories, branches and permissions."""

from __future__ import annotations

from typing import Any

from tests.github import views
from tests.github.calls import Call, RefusedError, RouteResponse, invalid, not_found, route
from tests.github.git import ZERO
from tests.github.pushes import pushed
from tests.github.schema_completion import complete

_REPO = "/repos/{owner}/{repo}"
#: Role → legacy value of `permission`.
_LEGACY = {"maintain": "write", "triage": "read"}


@route("GET", _REPO, "metadata=read")
def repository(call: Call) -> RouteResponse:
    shown = views.repository(call.hub, call.repository)
    if call.repository.fork_of is not None:
        shown["parent"] = shown["source"] = views.repository(call.hub, call.repository.fork_of)
    return RouteResponse(200, complete("full-repository", shown))


@route("GET", f"{_REPO}/collaborators/{{username}}/permission", "metadata=read")
def permission(call: Call) -> RouteResponse:
    """A user's permission; everybody reads public repositories."""
    login = call.parameters["username"]
    account = call.hub.world.accounts.get(login)
    if account is None:
        raise not_found()
    role = call.repository.role(login)
    shown = {
        "permission": _LEGACY.get(role, role),
        "role_name": role,
        "user": views.user(call.hub, account),
    }
    return RouteResponse(200, complete("repository-collaborator-permission", shown))


@route("GET", f"{_REPO}/branches", "contents=read")
def branches(call: Call) -> RouteResponse:
    heads = sorted(call.repository.git.heads().items())
    return RouteResponse(200, [_short(call, name, sha) for name, sha in call.page(heads)])


@route("GET", f"{_REPO}/branches/{{branch}}", "contents=read")
def branch(call: Call) -> RouteResponse:
    name, repo = call.parameters["branch"], call.repository
    sha = repo.git.head(name)
    if not sha:
        raise not_found()
    shown = _short(call, name, sha) | {"commit": views.commit(call.hub, repo, repo.git.describe(sha))}
    return RouteResponse(200, complete("branch-with-protection", shown))


@route("GET", f"{_REPO}/git/ref/{{ref}}", "contents=read")
def reference(call: Call) -> RouteResponse:
    """A reference such as heads/main."""
    sha = call.repository.git.resolve(f"refs/{call.parameters['ref']}")
    if not sha:
        raise not_found()
    return RouteResponse(200, _reference(call, f"refs/{call.parameters['ref']}", sha))


@route("POST", f"{_REPO}/git/refs", "contents=write")
def make_reference(call: Call) -> RouteResponse:
    name, sha = call.body["ref"], call.body["sha"]
    git = call.repository.git
    if not name.startswith("refs/") or not git.resolve(sha):
        raise invalid("Reference", "sha" if name.startswith("refs/") else "ref", "Object does not exist")
    if git.resolve(name):
        raise invalid("Reference", "ref", "Reference already exists")
    _move(call, name, sha)
    return RouteResponse(201, _reference(call, name, sha))


@route("PATCH", f"{_REPO}/git/refs/{{ref}}", "contents=write")
def move_reference(call: Call) -> RouteResponse:
    """Moves a branch; not a fast-forward only with force."""
    name, sha, git = f"refs/{call.parameters['ref']}", call.body["sha"], call.repository.git
    before = git.resolve(name)
    if not before or not git.resolve(sha):
        raise invalid("Reference", "ref" if not before else "sha", "Object does not exist")
    if git.base(before, sha) != before and not call.body.get("force"):
        raise invalid("Reference", "sha", "Update is not a fast forward")
    _move(call, name, sha)
    return RouteResponse(200, _reference(call, name, sha))


@route("DELETE", f"{_REPO}/git/refs/{{ref}}", "contents=write")
def delete_reference(call: Call) -> RouteResponse:
    name = f"refs/{call.parameters['ref']}"
    if not call.repository.git.resolve(name):
        raise invalid("Reference", "ref", "Reference does not exist")
    _move(call, name, ZERO)
    return RouteResponse(204)


@route("POST", f"{_REPO}/merge-upstream", "contents=write")
def merge_upstream(call: Call) -> RouteResponse:
    """Synchronizes a branch of a fork with the same branch of its parent ("Sync a fork branch")."""
    repo, name = call.repository, f"refs/heads/{call.body['branch']}"
    theirs = repo.fork_of.git.resolve(name) if repo.fork_of else ""
    ours = repo.git.resolve(name)
    if repo.fork_of is None or not theirs or not ours:
        raise RefusedError(422, "The branch could not be synced")
    repo.git.fetch(repo.fork_of.git, theirs, "refs/upstream")
    shared = repo.git.base(ours, theirs)
    kind = "none" if shared == theirs else "fast-forward" if shared == ours else "merge"
    made = {"none": ours, "fast-forward": theirs}.get(kind, "")
    if not made and (tree := repo.git.merge(ours, theirs)):
        made = repo.git.commit_of(tree, [ours, theirs], "Merge upstream", call.actor.writer.login)
    if not made:
        raise RefusedError(409, "There are merge conflicts")
    if made != ours:
        _move(call, name, made)
    shown = {"message": "Synchronized", "merge_type": kind, "base_branch": f"upstream:{call.body['branch']}"}
    return RouteResponse(200, shown)


def _move(call: Call, name: str, sha: str) -> None:
    repo, before = call.repository, call.repository.git.resolve(name)
    repo.git.point(name, sha)
    if name.startswith("refs/heads/"):
        pushed(call.hub, repo, name.removeprefix("refs/heads/"), before, call.actor.writer)


def _reference(call: Call, name: str, sha: str) -> Any:
    url = f"{call.hub.url}/repos/{call.repository.full_name}/git"
    target = {"type": "commit", "sha": sha, "url": f"{url}/commits/{sha}"}
    return complete("git-ref", {"ref": name, "node_id": name, "url": f"{url}/{name}", "object": target})


def _short(call: Call, name: str, sha: str) -> dict[str, Any]:
    url = f"{call.hub.url}/repos/{call.repository.full_name}"
    shown = {"name": name, "protected": False, "commit": {"sha": sha, "url": f"{url}/commits/{sha}"}}
    return dict(complete("short-branch", shown))
