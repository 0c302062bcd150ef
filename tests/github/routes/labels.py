"""Routes of labels of repositories and of issues."""

from __future__ import annotations

from typing import Any

from tests.github import operations, views
from tests.github.calls import Call, RouteResponse, invalid, not_found, route
from tests.github.routes.issues import issue
from tests.github.schema_completion import complete
from tests.github.state import Issue, Label

_REPO = "/repos/{owner}/{repo}"
_OF_ISSUE = f"{_REPO}/issues/{{issue_number}}/labels"
_READ, _WRITE = ("issues=read", "pull_requests=read"), ("issues=write", "pull_requests=write")


def _shown(call: Call, one: Label) -> Any:
    return complete("label", views.label(call.hub, call.repository, one))


def _label(call: Call) -> Label:
    found = call.repository.labels.get(call.parameters["name"].lower())
    if found is None:
        raise not_found()
    return found


@route("GET", f"{_REPO}/labels", *_READ)
def labels(call: Call) -> RouteResponse:
    return RouteResponse(200, [_shown(call, one) for one in call.page(list(call.repository.labels.values()))])


@route("POST", f"{_REPO}/labels", *_WRITE)
def create(call: Call) -> RouteResponse:
    name = call.body["name"]
    if name.lower() in call.repository.labels:
        raise invalid("Label", "name", code="already_exists")
    made = operations.ensure_label(call.hub, call.repository, name, call.body.get("color", "ededed"))
    made.description = call.body.get("description")
    return RouteResponse(201, _shown(call, made))


@route("GET", f"{_REPO}/labels/{{name}}", *_READ)
def read(call: Call) -> RouteResponse:
    return RouteResponse(200, _shown(call, _label(call)))


@route("PATCH", f"{_REPO}/labels/{{name}}", *_WRITE)
def change(call: Call) -> RouteResponse:
    one = _label(call)
    one.color = call.body.get("color", one.color)
    one.description = call.body.get("description", one.description)
    return RouteResponse(200, _shown(call, one))


@route("GET", _OF_ISSUE, *_READ)
def of_issue(call: Call) -> RouteResponse:
    return _labelled(call, issue(call))


@route("POST", _OF_ISSUE, *_WRITE)
def add(call: Call) -> RouteResponse:
    """Adds labels to an issue; missing ones are created."""
    return _set(call, issue(call).labels + _names(call))


@route("PUT", _OF_ISSUE, *_WRITE)
def put(call: Call) -> RouteResponse:
    """Replaces an issue's labels."""
    return _set(call, _names(call))


@route("DELETE", f"{_OF_ISSUE}/{{name}}", *_WRITE)
def remove(call: Call) -> RouteResponse:
    wanted = call.parameters["name"].lower()
    kept = [name for name in issue(call).labels if name.lower() != wanted]
    if len(kept) == len(issue(call).labels):
        raise not_found()
    return _set(call, kept)


def _set(call: Call, names: list[str]) -> RouteResponse:
    one = issue(call)
    operations.set_labels(call.hub, call.repository, one, call.actor.writer, names)
    return _labelled(call, one)


def _labelled(call: Call, one: Issue) -> RouteResponse:
    labels = call.repository.labels
    return RouteResponse(200, [_shown(call, labels[name.lower()]) for name in call.page(one.labels)])


def _names(call: Call) -> list[str]:
    given = call.body["labels"] if isinstance(call.body, dict) else call.body or []
    return [one if isinstance(one, str) else one["name"] for one in given]
