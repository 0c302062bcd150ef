"""Routes of issues."""

from __future__ import annotations

from typing import Any

from tests.github import operations, views
from tests.github.calls import Call, RefusedError, RouteResponse, not_found, route
from tests.github.schema_completion import complete
from tests.github.state import Issue, stamp

_ISSUES = "/repos/{owner}/{repo}/issues"


def enabled(call: Call) -> None:
    """Raises RefusedError 410 if issues are disabled."""
    if not call.repository.has_issues:
        raise RefusedError(410, "Issues are disabled for this repo")


def issue(call: Call) -> Issue:
    found = call.repository.issues.get(call.number("issue_number"))
    if found is None:
        raise not_found()
    if found.pull is None:
        enabled(call)
    return found


def shown(call: Call, one: Issue) -> Any:
    """The JSON of an issue."""
    return complete("issue", views.issue(call.hub, call.repository, one))


@route("GET", _ISSUES, "issues=read", "pull_requests=read")
def issues(call: Call) -> RouteResponse:
    """The issues, including pull requests."""
    enabled(call)
    requested, found = call.query, list(call.repository.issues.values())
    state = requested.get("state", "open")
    found = [one for one in found if state in ("all", one.state)]
    if "since" in requested:
        found = [one for one in found if (stamp(one.updated_at) or "") >= requested["since"]]
    if "creator" in requested:
        found = [one for one in found if one.author.login == requested["creator"]]
    wanted = [name.lower() for name in requested.get("labels", "").split(",") if name]
    found = [one for one in found if set(wanted) <= {name.lower() for name in one.labels}]
    key = "updated_at" if requested.get("sort") == "updated" else "created_at"
    newest_first = requested.get("direction", "desc") == "desc"
    found.sort(key=lambda one: (getattr(one, key), one.number), reverse=newest_first)
    return RouteResponse(200, [shown(call, one) for one in call.page(found)])


@route("POST", _ISSUES, "issues=write", creates=True)
def create(call: Call) -> RouteResponse:
    """Creates an issue; labels are ignored if the caller may not set them."""
    enabled(call)
    body, who = call.body, call.actor.writer
    labels = [one if isinstance(one, str) else one["name"] for one in body.get("labels", ())]
    if call.actor.kind == "user" and not call.repository.at_least(who.login, "triage"):
        labels = []
    made = operations.open_issue(call.hub, call.repository, who, str(body["title"]), body.get("body"), labels)
    return RouteResponse(201, shown(call, made))


@route("GET", f"{_ISSUES}/{{issue_number}}", "issues=read", "pull_requests=read")
def read(call: Call) -> RouteResponse:
    return RouteResponse(200, shown(call, issue(call)))


@route("PATCH", f"{_ISSUES}/{{issue_number}}", "issues=write", "pull_requests=write")
def change(call: Call) -> RouteResponse:
    """Updates an issue; the caller must be its author or may write."""
    one, who = issue(call), call.actor.writer
    if (
        call.actor.kind == "user"
        and one.author is not who
        and not call.repository.at_least(who.login, "triage")
    ):
        raise RefusedError(403, "Must have admin rights to Repository.")
    operations.edit_issue(call.hub, call.repository, one, who, call.body or {})
    return RouteResponse(200, shown(call, one))
