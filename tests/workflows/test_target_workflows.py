"""The workflows that a target copies: their steps run by bash, with the real action on real compilers."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from tests.bot.cli.command_helpers import GOOD, WRONG
from tests.workflows.conftest import ROOT, Machine, git

pytestmark = pytest.mark.compiler_onnxruntime
PULL_REQUEST = ROOT / "workflows" / "pull-request.yml"
NIGHTLY = ROOT / "workflows" / "nightly.yml"
BACKEND = {"BACKEND": "onnxruntime"}


def commit(machine: Machine, message: str, hours_ago: float) -> str:
    date = (datetime.now(UTC) - timedelta(hours=hours_ago)).isoformat()
    git(machine.workspace, "commit", "--quiet", "--allow-empty", "-m", message, date=date)
    return git(machine.workspace, "rev-parse", "HEAD")


@pytest.fixture
def history(machine: Machine) -> list[str]:
    """Two commits of the default branch, of two days ago and of today."""
    git(machine.workspace, "init", "--quiet", "--initial-branch", "main")
    return [commit(machine, "old", 48), commit(machine, "new", 1)]


def test_a_pull_requests_merge_is_compared_with_its_first_parent(
    machine: Machine, history: list[str]
) -> None:
    git(machine.workspace, "switch", "--quiet", "--create", "change", history[0])
    commit(machine, "change", 2)
    git(machine.workspace, "switch", "--quiet", "--detach", "main")
    git(machine.workspace, "merge", "--quiet", "--no-ff", "-m", "merge", "change")
    machine.cases(GOOD)
    payload = {"pull_request": {"number": 7}}
    [job] = machine.executor.run(PULL_REQUEST, "pull_request", payload=payload, env=BACKEND)
    assert job.succeeded, job.log
    [given] = machine.assay
    assert given["base"] == history[1]
    assert given["arguments"].split() == ["--repo", ".", "--head", "HEAD"]
    assert "::error" not in job.log
    assert {"report.html", "report.json", "assay.sarif", "assay.xml"} <= set(machine.uploads["assay"])


def test_the_report_of_a_broken_pull_request_is_kept(machine: Machine, history: list[str]) -> None:
    machine.given = {"arguments": "--cases\nnowhere", "base": ""}
    (machine.workspace / "assay-report").mkdir()
    payload = {"pull_request": {"number": 7}}
    [job] = machine.executor.run(PULL_REQUEST, "pull_request", payload=payload, env=BACKEND)
    assert not job.succeeded
    assert "nowhere" in job.log
    assert "assay" in machine.uploads


def test_a_night_compares_with_yesterday_and_shows_alerts(machine: Machine, history: list[str]) -> None:
    machine.cases(GOOD, WRONG)
    [job] = machine.executor.run(NIGHTLY, "schedule", env=BACKEND)
    assert job.succeeded, job.log
    assert machine.assay[0]["base"] == history[0]
    assert machine.assay[0]["fail-on"] == "never"
    [alerts] = machine.alerts
    assert len(json.loads(alerts.read_bytes())["runs"][0]["results"]) == 1
    assert "assay.xml" in machine.uploads["assay"]


def test_a_night_without_commits_runs_nothing(machine: Machine) -> None:
    git(machine.workspace, "init", "--quiet", "--initial-branch", "main")
    commit(machine, "old", 48)
    [job] = machine.executor.run(NIGHTLY, "schedule", env=BACKEND)
    assert job.succeeded
    assert "::notice::no commit since yesterday" in job.log
    assert (machine.assay, machine.uploads) == ([], {})


def test_a_base_may_be_named_by_hand(machine: Machine, history: list[str]) -> None:
    machine.given = {"arguments": "--cases\nnowhere", "base": ""}
    machine.executor.run(NIGHTLY, "workflow_dispatch", inputs={"base": "v1.0"}, env=BACKEND)
    assert machine.assay[0]["base"] == "v1.0"
