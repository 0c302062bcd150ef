"""Routes of commit statuses; the newest of each context counts."""

from __future__ import annotations

from typing import Any

from tests.github import operations, views
from tests.github.calls import Call, RouteResponse, route
from tests.github.routes.commits import resolved
from tests.github.schema_completion import complete
from tests.github.state import Status

_REPO = "/repos/{owner}/{repo}"


@route("POST", f"{_REPO}/statuses/{{sha}}", "statuses=write")
def create(call: Call) -> RouteResponse:
    """Adds a status to a commit."""
    sha = resolved(call, call.parameters["sha"])
    made = operations.set_status(call.hub, call.repository, call.actor.writer, sha, call.body)
    return RouteResponse(201, _shown(call, made))


@route("GET", f"{_REPO}/commits/{{ref}}/statuses", "statuses=read")
def of_commit(call: Call) -> RouteResponse:
    """All statuses of a commit, newest first."""
    return RouteResponse(200, [_shown(call, one) for one in call.page(_of(call)[::-1])])


def _of(call: Call) -> list[Status]:
    sha = resolved(call, call.parameters["ref"])
    return [one for one in call.repository.statuses if one.sha == sha]


def _shown(call: Call, one: Status) -> Any:
    return complete("status", views.status(call.hub, call.repository, one))
