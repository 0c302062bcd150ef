"""Routes of check runs and suites. Only Apps write them."""

from __future__ import annotations

from typing import Any

from tests.github import checks, pull_views
from tests.github.calls import Call, RouteResponse, not_found, route
from tests.github.routes.commits import resolved
from tests.github.schema_completion import complete
from tests.github.state import CheckRun

_REPO = "/repos/{owner}/{repo}"
_ONE = f"{_REPO}/check-runs/{{check_run_id}}"


def _run(call: Call) -> CheckRun:
    found = call.repository.check_runs.get(call.number("check_run_id"))
    if found is None:
        raise not_found()
    return found


def _shown(call: Call, run: CheckRun) -> Any:
    return complete("check-run", pull_views.check_run(call.hub, call.repository, run))


@route("POST", f"{_REPO}/check-runs", "checks=write")
def create(call: Call) -> RouteResponse:
    return RouteResponse(
        201, _shown(call, checks.make(call.hub, call.repository, call.actor.writer, call.body))
    )


@route("GET", _ONE, "checks=read")
def read(call: Call) -> RouteResponse:
    return RouteResponse(200, _shown(call, _run(call)))


@route("PATCH", _ONE, "checks=write")
def change(call: Call) -> RouteResponse:
    """Updates a check run; annotations are appended."""
    run = _run(call)
    checks.change(call.hub, call.repository, run, call.actor.writer, call.body or {})
    return RouteResponse(200, _shown(call, run))


@route("GET", f"{_ONE}/annotations", "checks=read")
def all_annotations(call: Call) -> RouteResponse:
    run = _run(call)
    shown = [pull_views.annotation(call.hub, call.repository, run.head_sha, one) for one in run.annotations]
    return RouteResponse(200, [complete("check-annotation", one) for one in call.page(shown)])


@route("GET", f"{_REPO}/commits/{{ref}}/check-runs", "checks=read")
def of_commit(call: Call) -> RouteResponse:
    """The check runs of a commit; only the newest of each name, unless all are requested."""
    sha, requested = resolved(call, call.parameters["ref"]), call.query
    runs = [run for run in call.repository.check_runs.values() if run.head_sha == sha]
    runs = [run for run in runs if requested.get("check_name") in (None, run.fields["name"])]
    runs = [run for run in runs if requested.get("status") in (None, run.fields.get("status"))]
    if requested.get("filter", "latest") == "latest":
        runs = list({run.fields["name"]: run for run in runs}.values())
    shown = [_shown(call, run) for run in call.page(runs[::-1])]
    return RouteResponse(200, {"total_count": len(runs), "check_runs": shown})


@route("GET", f"{_REPO}/commits/{{ref}}/check-suites", "checks=read")
def suites(call: Call) -> RouteResponse:
    sha = resolved(call, call.parameters["ref"])
    found = [one for one in call.repository.suites.values() if one.head_sha == sha]
    shown = [pull_views.check_suite(call.hub, call.repository, one) for one in call.page(found)]
    return RouteResponse(
        200,
        {"total_count": len(found), "check_suites": [complete("check-suite", one) for one in shown]},
    )


@route("GET", f"{_REPO}/check-suites/{{check_suite_id}}", "checks=read")
def suite(call: Call) -> RouteResponse:
    found = call.repository.suites.get(call.number("check_suite_id"))
    if found is None:
        raise not_found()
    return RouteResponse(
        200, complete("check-suite", pull_views.check_suite(call.hub, call.repository, found))
    )
