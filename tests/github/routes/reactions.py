"""Routes of reactions to issues and comments."""

from __future__ import annotations

from tests.github import operations, views
from tests.github.calls import Call, RouteResponse, not_found, route
from tests.github.routes.comments import comment
from tests.github.routes.issues import issue
from tests.github.schema_completion import complete

_ISSUE = "/repos/{owner}/{repo}/issues/{issue_number}/reactions"
_COMMENT = "/repos/{owner}/{repo}/issues/comments/{comment_id}/reactions"
_READ, _WRITE = ("issues=read", "pull_requests=read"), ("issues=write", "pull_requests=write")


@route("GET", _ISSUE, *_READ)
def of_issue(call: Call) -> RouteResponse:
    return _listed(call, issue(call).number, None)


@route("POST", _ISSUE, *_WRITE, creates=True)
def to_issue(call: Call) -> RouteResponse:
    return _react(call, issue(call).number, None)


@route("GET", _COMMENT, *_READ)
def of_comment(call: Call) -> RouteResponse:
    return _listed(call, comment(call).issue, comment(call).id)


@route("POST", _COMMENT, *_WRITE, creates=True)
def to_comment(call: Call) -> RouteResponse:
    return _react(call, comment(call).issue, comment(call).id)


@route("DELETE", f"{_COMMENT}/{{reaction_id}}", *_WRITE)
def remove(call: Call) -> RouteResponse:
    found = call.repository.reactions.get(call.number("reaction_id"))
    if found is None or found.comment != comment(call).id or found.author is not call.actor.writer:
        raise not_found()
    del call.repository.reactions[found.id]
    return RouteResponse(204)


def _listed(call: Call, number: int, comment_id: int | None) -> RouteResponse:
    found = views.reactions(call.repository, number, comment_id)
    wanted = call.query.get("content")
    found = [one for one in found if wanted in (None, one.content)]
    return RouteResponse(
        200, [complete("reaction", views.reaction(call.hub, one)) for one in call.page(found)]
    )


def _react(call: Call, number: int, comment_id: int | None) -> RouteResponse:
    who, content = call.actor.writer, call.body["content"]
    made, new = operations.react(call.hub, call.repository, who, content, number, comment_id)
    return RouteResponse(201 if new else 200, complete("reaction", views.reaction(call.hub, made)))
