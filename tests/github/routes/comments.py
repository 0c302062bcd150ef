"""Routes of comments on issues and pull requests."""

from __future__ import annotations

from typing import Any

from tests.github import operations, views
from tests.github.calls import Call, RefusedError, RouteResponse, not_found, route
from tests.github.routes.issues import issue
from tests.github.schema_completion import complete
from tests.github.state import Comment, stamp

_ISSUES = "/repos/{owner}/{repo}/issues"
_ONE = f"{_ISSUES}/comments/{{comment_id}}"
_READ, _WRITE = ("issues=read", "pull_requests=read"), ("issues=write", "pull_requests=write")


def comment(call: Call) -> Comment:
    found = call.repository.comments.get(call.number("comment_id"))
    if found is None:
        raise not_found()
    return found


def _shown(call: Call, one: Comment) -> Any:
    return complete("issue-comment", views.comment(call.hub, call.repository, one))


def _own(call: Call, one: Comment) -> None:
    """Raises RefusedError unless the caller is the author or may write."""
    who = call.actor.writer
    if (
        call.actor.kind == "user"
        and one.author is not who
        and not call.repository.at_least(who.login, "write")
    ):
        raise RefusedError(403, "Must have admin rights to Repository.")


@route("GET", f"{_ISSUES}/{{issue_number}}/comments", *_READ)
def of_issue(call: Call) -> RouteResponse:
    """The comments of one issue, oldest first."""
    number = issue(call).number
    found = [one for one in call.repository.comments.values() if one.issue == number]
    if "since" in call.query:
        found = [one for one in found if (stamp(one.updated_at) or "") >= call.query["since"]]
    return RouteResponse(200, [_shown(call, one) for one in call.page(found)])


@route("POST", f"{_ISSUES}/{{issue_number}}/comments", *_WRITE, creates=True)
def create(call: Call) -> RouteResponse:
    made = operations.comment(call.hub, call.repository, issue(call), call.actor.writer, call.body["body"])
    return RouteResponse(201, _shown(call, made))


@route("GET", f"{_ISSUES}/comments", *_READ)
def of_repository(call: Call) -> RouteResponse:
    """The comments of a repository, by creation or update time."""
    found = list(call.repository.comments.values())
    if "since" in call.query:
        found = [one for one in found if (stamp(one.updated_at) or "") >= call.query["since"]]
    key = "updated_at" if call.query.get("sort") == "updated" else "created_at"
    found.sort(key=lambda one: (getattr(one, key), one.id), reverse=call.query.get("direction") == "desc")
    return RouteResponse(200, [_shown(call, one) for one in call.page(found)])


@route("GET", _ONE, *_READ)
def read(call: Call) -> RouteResponse:
    return RouteResponse(200, _shown(call, comment(call)))


@route("PATCH", _ONE, *_WRITE)
def change(call: Call) -> RouteResponse:
    """Edits a comment."""
    one = comment(call)
    _own(call, one)
    operations.edit_comment(call.hub, call.repository, one, call.actor.writer, call.body["body"])
    return RouteResponse(200, _shown(call, one))


@route("DELETE", _ONE, *_WRITE)
def delete(call: Call) -> RouteResponse:
    one = comment(call)
    _own(call, one)
    operations.delete_comment(call.hub, call.repository, one, call.actor.writer)
    return RouteResponse(204)
