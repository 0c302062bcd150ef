"""Routes of pull requests."""

from __future__ import annotations

from tests.github import operations, pull_views, pushes, views
from tests.github.calls import Call, RouteResponse, invalid, not_found, route
from tests.github.schema_completion import complete
from tests.github.state import Issue, Pull

_PULLS = "/repos/{owner}/{repo}/pulls"
_ONE = f"{_PULLS}/{{pull_number}}"
#: Maximal number of files of a pull request.
MOST_FILES, MOST_COMMITS = 3_000, 250


def _pull(call: Call) -> tuple[Issue, Pull]:
    found = call.repository.issues.get(call.number("pull_number"))
    if found is None or found.pull is None:
        raise not_found()
    return found, found.pull


@route("GET", _PULLS, "pull_requests=read")
def pulls(call: Call) -> RouteResponse:
    """The pull requests, newest first."""
    requested, state = call.query, call.query.get("state", "open")
    found = [one for one in call.repository.issues.values() if one.pull and state in ("all", one.state)]
    if "base" in requested:
        found = [one for one in found if one.pull and one.pull.base_ref == requested["base"]]
    if "head" in requested:
        found = [one for one in found if one.pull and _label(one.pull) == requested["head"]]
    key = "updated_at" if requested.get("sort") == "updated" else "created_at"
    newest_first = requested.get("direction", "desc" if "sort" not in requested else "asc") == "desc"
    found.sort(key=lambda one: (getattr(one, key), one.number), reverse=newest_first)
    shown = [pull_views.pull(call.hub, call.repository, one) for one in call.page(found)]
    return RouteResponse(200, [complete("pull-request-simple", one) for one in shown])


@route("POST", _PULLS, "pull_requests=write", creates=True)
def create(call: Call) -> RouteResponse:
    """A new pull request from a branch here, or OWNER:BRANCH of a fork."""
    body, repo = call.body, call.repository
    owner, _, branch = body["head"].rpartition(":")
    name = body.get("head_repo", repo.name)
    source = call.hub.world.named(f"{owner}/{name}") if owner else repo
    if source is None:
        raise invalid("PullRequest", "head", code="invalid")
    if source is not repo and body.get("maintainer_can_modify") and call.actor.installation is not None:
        # An App is no owner of a fork (seen in GitHub's answers, in no documentation).
        message = "Fork collab can't be granted by someone without permission"
        raise invalid("PullRequest", "fork_collab", message)
    text = (body.get("title", branch), body.get("body"))
    who, draft = call.actor.writer, body.get("draft", False)
    made = pushes.open_pull(call.hub, repo, who, (source, branch), body["base"], text, draft)
    return RouteResponse(201, complete("pull-request", pull_views.pull(call.hub, repo, made)))


@route("GET", _ONE, "pull_requests=read")
def read(call: Call) -> RouteResponse:
    issue, _ = _pull(call)
    return RouteResponse(200, complete("pull-request", pull_views.pull(call.hub, call.repository, issue)))


@route("PATCH", _ONE, "pull_requests=write")
def change(call: Call) -> RouteResponse:
    (issue, _), body, who = _pull(call), dict(call.body or {}), call.actor.writer
    state = body.pop("state", issue.state)
    operations.edit_issue(call.hub, call.repository, issue, who, body)
    if state != issue.state:
        turn = pushes.close_pull if state == "closed" else pushes.reopen_pull
        turn(call.hub, call.repository, issue, who)
    return read(call)


@route("GET", f"{_ONE}/files", "pull_requests=read")
def files(call: Call) -> RouteResponse:
    _, one = _pull(call)
    found = call.repository.git.files(one.base_sha, one.head_sha)[:MOST_FILES]
    shown = [pull_views.file(call.hub, call.repository, one.head_sha, file) for file in call.page(found)]
    return RouteResponse(200, [complete("diff-entry", file) for file in shown])


@route("GET", f"{_ONE}/commits", "pull_requests=read")
def commits(call: Call) -> RouteResponse:
    """Its commits, oldest first."""
    _, one = _pull(call)
    found = call.repository.git.between(one.base_sha, one.head_sha)[:MOST_COMMITS]
    return RouteResponse(
        200, [complete("commit", views.commit(call.hub, call.repository, one)) for one in call.page(found)]
    )


def _label(one: Pull) -> str:
    owner = one.head_repository.owner.login if one.head_repository else "ghost"
    return f"{owner}:{one.head_ref}"
