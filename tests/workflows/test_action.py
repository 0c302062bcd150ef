"""Assay as a step of a workflow: `action.yml`, its steps run by bash on real compilers."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from fuzzing import backends
from tests.bot.cli.command_helpers import GOOD, WRONG
from tests.workflows.conftest import ROOT, Machine
from tests.workflows.executor import load

pytestmark = pytest.mark.compiler_onnxruntime
RUN = {"backend": "onnxruntime", "budget": "60s"}


def test_a_failing_case_fails_the_step_and_is_shown_in_every_format(machine: Machine) -> None:
    machine.cases(GOOD, WRONG)
    outputs, job = machine.run_action(RUN | machine.given)
    assert not job.succeeded
    assert (outputs["findings"], outputs["headline"]) == ("1", "1 kind of failure: 1 of 2 cases fail")
    [error] = [line for line in job.log.splitlines() if line.startswith("::error")]
    assert error.startswith("::error title=[ONNX] Add%3A")
    assert "%0AReproducer: reproducers/" in error
    assert "::notice title=Assay::1 kind of failure" in job.log
    assert "### Assay: onnxruntime" in job.summary

    sarif = json.loads((machine.workspace / outputs["sarif"]).read_bytes())
    [run] = sarif["runs"]
    [rule], [result] = run["tool"]["driver"]["rules"], run["results"]
    assert result["ruleId"] == rule["id"]
    assert result["level"] == "error"
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == ".github/assay.yml"

    suite = ET.parse(machine.workspace / outputs["junit"]).getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    assert [one.get("name") for one in suite.findall("testcase[failure]")] == ["Add"]
    report = json.loads((machine.workspace / "assay-report" / "report.json").read_bytes())
    assert report["verdicts"]["head"] == {"pass": 1, "wrong_result": 1}


@pytest.mark.parametrize(
    ("given", "status", "message"),
    [
        ({"backend": "onnxrutime"}, 2, "did you mean 'onnxruntime'?"),
        ({"arguments": "--cases\n$(touch hacked)\n--repeats\n1"}, 2, "$(touch hacked)"),
        ({"arguments": "--repo\n.\n--head\nHEAD", "base": "HEAD"}, 2, "not a git repository"),
    ],
    ids=["backend", "a word that a shell would run", "no repository"],
)
def test_mistakes_fail_the_step_with_their_own_message(
    machine: Machine, given: dict[str, str], status: int, message: str
) -> None:
    _, job = machine.run_action(RUN | given)
    [run] = [step for step in job.steps if step.outcome == "failure"]
    assert run.name == "Run"
    assert message in run.log
    assert run.log.endswith(f"the script ended with status {status}\n")
    assert job.step("Annotate").outcome == "skipped"
    assert list(machine.workspace.glob("*hacked*")) == []


def test_what_a_compiler_prints_is_no_command_of_the_workflow(machine: Machine, tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text(
        "#!/bin/bash\nif [ \"$1\" = -c ]; then echo 5eed; exit; fi\necho '::error::forged' >&2\nexit 3\n"
    )
    program.chmod(0o755)
    _, job = machine.run_action(RUN | {"python": str(program)})
    lines = job.step("Run").log.splitlines()
    assert lines.index("::stop-commands::5eed") < lines.index("::error::forged") < lines.index("::5eed::")


def test_every_input_is_documented_and_used() -> None:
    text = (ROOT / "action.yml").read_text()
    for name, one in load(ROOT / "action.yml")["inputs"].items():
        assert one["description"]
        assert f"inputs.{name}" in text


def test_each_compiler_that_the_workflows_name_is_a_backend_with_an_extra() -> None:
    """pip installs nothing for an extra that it does not know, and only warns."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for name in ("pull-request", "nightly"):
        [named] = re.findall("# your compiler: (.+)", (ROOT / f"workflows/{name}.yml").read_text())
        compilers = set(re.split(", | or ", named))
        assert len(compilers) > 4
        assert compilers <= extras.keys()
        assert compilers <= set(backends.names())
