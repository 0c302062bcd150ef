"""Routes of commits, comparisons, and the pull requests of a commit."""

from __future__ import annotations

from typing import Any

from tests.github import pull_views, views
from tests.github.calls import Call, RefusedError, RouteResponse, not_found, route
from tests.github.schema_completion import complete

_REPO = "/repos/{owner}/{repo}"


@route("GET", f"{_REPO}/commits", "contents=read")
def commits(call: Call) -> RouteResponse:
    """The history of a branch, newest first."""
    git = call.repository.git
    start = git.resolve(call.query.get("sha") or call.repository.default_branch)
    if not start:
        raise RefusedError(409, "Git Repository is empty.")
    listed = git.run("rev-list", start).split()
    shown = [views.commit(call.hub, call.repository, git.describe(sha)) for sha in call.page(listed)]
    return RouteResponse(200, [complete("commit", one) for one in shown])


@route("GET", f"{_REPO}/commits/{{ref}}", "contents=read")
def commit(call: Call) -> RouteResponse:
    """One commit with its files."""
    repo = call.repository
    found = repo.git.describe(resolved(call, call.parameters["ref"]))
    files = repo.git.files(found.parents[0], found.sha) if found.parents else []
    shown = views.commit(call.hub, repo, found)
    counts = {name: sum(file[name] for file in files) for name in ("additions", "deletions")}
    shown["stats"] = counts | {"total": sum(counts.values())}
    shown["files"] = [pull_views.file(call.hub, repo, found.sha, file) for file in files]
    return RouteResponse(200, complete("commit", shown))


@route("GET", f"{_REPO}/commits/{{commit_sha}}/pulls", "pull_requests=read")
def pulls(call: Call) -> RouteResponse:
    """The open pull requests with this head, also from forks."""
    repo, sha = call.repository, call.parameters["commit_sha"]
    found = [
        one for one in repo.issues.values() if one.pull and sha in (one.pull.head_sha, one.pull.merge_commit)
    ]
    shown = [pull_views.pull(call.hub, repo, one) for one in call.page(found)]
    return RouteResponse(200, [complete("pull-request-simple", one) for one in shown])


@route("GET", f"{_REPO}/compare/{{basehead}}", "contents=read")
def compare(call: Call) -> RouteResponse:
    """The changes since the merge base."""
    repo, git = call.repository, call.repository.git
    base_name, _, head_name = call.parameters["basehead"].partition("...")
    base, head = resolved(call, base_name, 404), resolved(call, head_name, 404)
    fork = git.base(base, head)
    if not fork:
        raise RefusedError(404, f"No common ancestor between {base_name} and {head_name}.")
    ahead, behind = git.between(base, head), git.between(head, base)
    words = {(True, True): "diverged", (True, False): "ahead", (False, True): "behind"}
    url = f"{call.hub.url}/repos/{repo.full_name}/compare/{base_name}...{head_name}"

    def seen(sha: str) -> dict[str, Any]:
        return views.commit(call.hub, repo, git.describe(sha))

    shown = {
        "url": url,
        "html_url": f"{views.WEB}/{repo.full_name}/compare/{base_name}...{head_name}",
        "base_commit": seen(base),
        "merge_base_commit": seen(fork),
        "status": words.get((bool(ahead), bool(behind)), "identical"),
        "ahead_by": len(ahead),
        "behind_by": len(behind),
        "total_commits": len(ahead),
        "commits": [seen(one.sha) for one in call.page(ahead)],
        "files": [pull_views.file(call.hub, repo, head, one) for one in git.files(base, head)[:300]],
    }
    return RouteResponse(200, complete("commit-comparison", shown))


def resolved(call: Call, name: str, missing: int = 422) -> str:
    """The commit of a branch, tag or id."""
    git = call.repository.git
    sha = git.head(name) or git.resolve(name)
    if sha:
        return sha
    if missing == 404:
        raise not_found()
    raise RefusedError(missing, f"No commit found for SHA: {name}")
