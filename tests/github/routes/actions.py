"""Routes of GitHub Actions: runs of workflows, their artifacts, dispatches and cancellation."""

from __future__ import annotations

import hashlib
from typing import Any

from tests.github.calls import Call, RefusedError, RouteResponse, not_found, route
from tests.github.schema_completion import complete
from tests.github.state import WorkflowRun

_ACTIONS = "/repos/{owner}/{repo}/actions"


@route("GET", f"{_ACTIONS}/workflows/{{workflow_id}}/runs", "actions=read")
def runs(call: Call) -> RouteResponse:
    """The runs of a workflow, newest first; 404 for a workflow without any."""
    ours = [one for one in call.repository.workflow_runs if one.workflow == call.parameters["workflow_id"]]
    if not ours:
        raise not_found()
    found = [
        one
        for one in ours
        if call.query.get("head_sha") in (None, one.head_sha)
        and call.query.get("status") in (None, one.status)
    ][::-1]
    shown = [_run(call, one) for one in call.page(found)]
    return RouteResponse(200, {"total_count": len(found), "workflow_runs": shown})


@route("POST", f"{_ACTIONS}/workflows/{{workflow_id}}/dispatches", "actions=write")
def dispatch(call: Call) -> RouteResponse:
    """Starts a run of a workflow. The double reads no `run-name`, and all of ours are "assay NAME"."""
    inputs = call.body.get("inputs", {})
    if not all(isinstance(value, str) for value in inputs.values()):
        raise RefusedError(422, "Provided value is not a string")
    run = WorkflowRun(
        next(call.hub.world.ids),
        call.parameters["workflow_id"],
        "",
        status="queued",
        conclusion=None,
        title=f"assay {inputs['name']}",
        inputs=inputs,
    )
    call.repository.workflow_runs.append(run)
    return RouteResponse(204)


@route("POST", f"{_ACTIONS}/runs/{{run_id}}/cancel", "actions=write")
def cancel(call: Call) -> RouteResponse:
    run = next((one for one in call.repository.workflow_runs if one.id == call.number("run_id")), None)
    if run is None:
        raise not_found()
    if run.status == "completed":
        raise RefusedError(409, "Cannot cancel a workflow run that is completed.")
    run.status, run.conclusion = "completed", "cancelled"
    return RouteResponse(202, {})


@route("GET", f"{_ACTIONS}/runs/{{run_id}}/artifacts", "actions=read")
def artifacts(call: Call) -> RouteResponse:
    run = next((one for one in call.repository.workflow_runs if one.id == call.number("run_id")), None)
    if run is None:
        raise not_found()
    shown = [_artifact(call, number, name, data) for (number, name), data in run.artifacts.items()]
    return RouteResponse(200, {"total_count": len(shown), "artifacts": call.page(shown)})


@route("GET", f"{_ACTIONS}/artifacts/{{artifact_id}}/{{archive_format}}", "actions=read")
def download(call: Call) -> RouteResponse:
    """Redirects to the store of files, which is another server."""
    wanted = call.number("artifact_id")
    if not any(number == wanted for one in call.repository.workflow_runs for number, _ in one.artifacts):
        raise not_found()
    return RouteResponse(302, None, {"location": f"{call.hub.artifact_store}/{wanted}.zip?signature=x"})


def _run(call: Call, run: WorkflowRun) -> Any:
    known = {
        "id": run.id,
        "head_sha": run.head_sha,
        "path": f".github/workflows/{run.workflow}",
        "status": run.status,
        "display_title": run.title,
        "conclusion": run.conclusion,
        "html_url": f"https://github.com/{call.repository.full_name}/actions/runs/{run.id}",
    }
    return complete("workflow-run", known)


def _artifact(call: Call, number: int, name: str, data: bytes) -> Any:
    known = {
        "id": number,
        "name": name,
        "size_in_bytes": len(data),
        "expired": False,
        "digest": f"sha256:{hashlib.sha256(data).hexdigest()}",
    }
    return complete("artifact", known)
