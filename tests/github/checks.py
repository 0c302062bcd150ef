"""Check runs: created and updated by our App, buttons and re-runs used by people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.github import pull_views
from tests.github.calls import invalid
from tests.github.operations import check_text
from tests.github.pushes import suite
from tests.github.state import Account, CheckRun, Repository, stamp

if TYPE_CHECKING:
    from tests.github.core import GitHubCore

#: "Checks API": a request takes 50 annotations; later ones add to those that are there.
MOST_ANNOTATIONS = 50
LONGEST_OUTPUT, LONGEST_TITLE = 65_535, 255
MOST_ACTIONS = 3
#: Characters of a button's label, description and identifier.
LONGEST_ACTION = {"label": 20, "description": 40, "identifier": 20}


def make(hub: GitHubCore, repo: Repository, by: Account, printed: dict[str, Any]) -> CheckRun:
    """A new check run."""
    if not repo.git.resolve(printed["head_sha"]):
        raise invalid("CheckRun", "head_sha", f"No commit found for SHA: {printed['head_sha']}")
    _check(printed)
    run = CheckRun(next(hub.world.ids), suite(hub, repo, printed["head_sha"]), printed["head_sha"], {})
    repo.check_runs[run.id] = run
    _apply(hub, run, printed)
    tell(hub, repo, run, "created", by)
    if run.fields.get("status") == "completed":
        tell(hub, repo, run, "completed", by)
    return run


def change(hub: GitHubCore, repo: Repository, run: CheckRun, by: Account, printed: dict[str, Any]) -> None:
    """Updates a check run; omitted fields stay, annotations are appended."""
    _check(printed)
    before = run.fields.get("status")
    _apply(hub, run, printed)
    if before != "completed" and run.fields.get("status") == "completed":
        tell(hub, repo, run, "completed", by)


def tell(hub: GitHubCore, repo: Repository, run: CheckRun, action: str, by: Account, **more: Any) -> None:
    """Sends the event of a check run."""
    seen = pull_views.check_run(hub, repo, run)
    seen["check_suite"] = pull_views.check_suite(hub, repo, run.suite)
    hub.emit("check_run", {"action": action, "check_run": seen} | more, repo, by)


def _apply(hub: GitHubCore, run: CheckRun, printed: dict[str, Any]) -> None:
    output = dict(printed.get("output") or {})
    run.annotations += output.pop("annotations", [])
    kept = {name: value for name, value in printed.items() if name not in ("output", "head_sha")}
    run.fields |= kept
    if output:
        run.fields["output"] = output
    if run.fields.get("conclusion"):  # GitHub: "Providing conclusion will automatically set the status"
        run.fields["status"] = "completed"
        run.fields.setdefault("completed_at", stamp(hub.world.clock()))
    run.fields.setdefault("started_at", stamp(hub.world.clock()))


def _check(printed: dict[str, Any]) -> None:
    if printed.get("status") == "completed" and not printed.get("conclusion"):
        raise invalid("CheckRun", "conclusion", code="missing_field")
    output = printed.get("output") or {}
    if len(output.get("annotations", ())) > MOST_ANNOTATIONS:
        raise invalid("CheckRun", "annotations", f"No more than {MOST_ANNOTATIONS} annotations at a time")
    for name in ("summary", "text"):
        check_text("CheckRun", name, output.get(name), LONGEST_OUTPUT)
    check_text("CheckRun", "title", output.get("title"), LONGEST_TITLE)
    for one in output.get("annotations", ()):
        check_text("CheckRun", "annotation title", one.get("title"), LONGEST_TITLE)
        if len(one["message"].encode()) > 64 * 1024:
            raise invalid("CheckRun", "annotation message", "is too long (maximum is 64 KB)")
        if one["start_line"] > one["end_line"]:
            raise invalid("CheckRun", "annotation end_line", "must not be before start_line")
    if len(printed.get("actions") or ()) > MOST_ACTIONS:
        raise invalid("CheckRun", "actions", f"No more than {MOST_ACTIONS} actions")
    for action in printed.get("actions") or ():
        for name, most in LONGEST_ACTION.items():
            check_text("CheckRun", f"action {name}", action[name], most)
