"""Runs workflows of GitHub Actions on this machine: their `run` steps with bash, as a runner does.

Contexts, `if`, `env`, `with`, matrices, outputs, the files of a step and composite actions behave as GitHub's
documentation, "Workflow syntax" and "Metadata syntax", says. `uses` steps are functions of the test.
"""

from __future__ import annotations

import itertools
import os
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from tests.workflows.expressions import Contexts, condition, interpolate, value_of

#: A step `uses` → what does its work here: (folder of the job, inputs) → outputs. Raises StepFailed.
Action = Callable[[Path, Mapping[str, str]], Mapping[str, str]]
#: How GitHub starts bash where a step names it, and where it names no shell.
_SHELLS = {
    "bash": "bash --noprofile --norc -eo pipefail {0}",
    "": "bash -e {0}",
    "python": "python {0}",
}


class StepFailed(Exception):
    """A step that failed."""


class WorkflowError(ValueError):
    """A workflow that GitHub would not start."""


@dataclass
class StepResult:
    """A step that ran or was skipped.

    outcome  success, failure or skipped
    log      what it printed, with its commands
    """

    name: str
    outcome: str
    log: str = ""
    outputs: dict[str, str] = field(default_factory=dict)


@dataclass
class JobResult:
    """A job of a matrix: its steps and its summary."""

    matrix: Mapping[str, Any]
    steps: list[StepResult] = field(default_factory=list)
    summary: str = ""
    runs_on: Any = None
    env: dict[str, str] = field(default_factory=dict)

    @property
    def succeeded(self) -> bool:
        return all(step.outcome != "failure" for step in self.steps)

    @property
    def log(self) -> str:
        return "".join(step.log for step in self.steps)

    def step(self, name: str) -> StepResult:
        return next(step for step in self.steps if step.name == name)


@dataclass
class Executor:
    """A runner. `workspace` is the job's folder, `temp` its folder for other files.

    actions      "owner/name" → what it does here; a folder is a composite action that is executed
    environment  variables of the machine
    """

    workspace: Path
    temp: Path
    actions: Mapping[str, Action | Path]
    environment: Mapping[str, str]

    def run(
        self,
        workflow: Path,
        event: str,
        *,
        payload: Mapping[str, Any] | None = None,
        inputs: Mapping[str, str] | None = None,
        secrets: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> list[JobResult]:
        """All jobs of a workflow; `env` replaces variables that people edit at its top."""
        document = load(workflow)
        triggers = document["on"]
        if event not in triggers:
            raise WorkflowError(f"{workflow.name} does not start on {event}")
        known = triggers[event].get("inputs", {}) if isinstance(triggers[event], dict) else {}
        contexts: dict[str, Any] = {
            "github": {"event_name": event, "event": dict(payload or {}), "workspace": str(self.workspace)},
            "inputs": _inputs(known, inputs or {}),
            "secrets": dict(secrets or {}),
            "runner": {"temp": str(self.temp), "os": "Linux"},
        }
        contexts["env"] = _env(document.get("env"), contexts) | dict(env or {})
        return [job for one in document["jobs"].values() for job in self._run_job(one, contexts)]

    def _run_job(self, job: Mapping[str, Any], contexts: Contexts) -> Iterator[JobResult]:
        axes = {
            name: value_of(values, contexts)
            for name, values in job.get("strategy", {}).get("matrix", {}).items()
        }
        for values in itertools.product(*axes.values()):
            matrix = dict(zip(axes, values, strict=True))
            inner = {**contexts, "matrix": matrix, "steps": {}, "job": {"status": "success"}}
            inner["env"] = contexts["env"] | _env(job.get("env"), inner)
            result = JobResult(matrix, runs_on=value_of(job["runs-on"], inner))
            value_of(job.get("timeout-minutes"), inner)
            if condition(job.get("if", True), inner | {"status": _status(failed=False)}):
                self._run_steps(job["steps"], inner, result)
            yield result

    def _run_steps(self, steps: list[Mapping[str, Any]], contexts: dict[str, Any], result: JobResult) -> None:
        failed = False
        for number, step in enumerate(steps):
            inner = {**contexts, "status": _status(failed=failed)}
            inner["env"] = {**contexts["env"], **result.env}
            name = interpolate(str(step.get("name") or step.get("uses") or f"run {number}"), inner)
            done = StepResult(name, "skipped")
            if condition(step.get("if", True), inner):
                inner["env"] = inner["env"] | _env(step.get("env"), inner)
                self._run_step(step, inner, done, result)
            result.steps.append(done)
            if "id" in step:
                contexts["steps"][step["id"]] = {"outputs": done.outputs, "outcome": done.outcome}
            failed = failed or done.outcome == "failure"

    def _run_step(
        self, step: Mapping[str, Any], contexts: dict[str, Any], done: StepResult, result: JobResult
    ) -> None:
        try:
            if "run" in step:
                self._run_script(step, contexts, done, result)
            else:
                given = {
                    name: interpolate(str(value), contexts) for name, value in step.get("with", {}).items()
                }
                done.outputs = dict(self._use(step["uses"], given, contexts, result))
            done.outcome = "success"
        except StepFailed as failure:
            done.outcome = "failure"
            done.log += f"{failure}\n"

    def _run_script(
        self, step: Mapping[str, Any], contexts: dict[str, Any], done: StepResult, result: JobResult
    ) -> None:
        number = len(list(self.temp.glob("step-*")))
        folder = self.temp / f"step-{number}"
        folder.mkdir(parents=True)
        files = {name: folder / name for name in ("output", "env", "step_summary", "path")}
        for file in files.values():
            file.touch()
        script = folder / "script.sh"
        script.write_text(interpolate(step["run"], contexts))
        command = shlex.split(_SHELLS[step.get("shell", "")].format(shlex.quote(str(script))))
        ran = subprocess.run(
            command,
            cwd=self.workspace / step.get("working-directory", "."),
            env={
                **self.environment,
                "CI": "true",
                "GITHUB_ACTIONS": "true",
                "RUNNER_TEMP": str(self.temp),
                **{f"GITHUB_{name.upper()}": str(file) for name, file in files.items()},
                **{name: str(value) for name, value in contexts["env"].items()},
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
        )
        done.log = ran.stdout
        done.outputs = parse_file(files["output"].read_text())
        result.env |= parse_file(files["env"].read_text())
        result.summary += files["step_summary"].read_text()
        if ran.returncode:
            raise StepFailed(f"the script ended with status {ran.returncode}")

    def _use(
        self, uses: str, given: Mapping[str, str], contexts: Contexts, result: JobResult
    ) -> Mapping[str, str]:
        name = "/".join(uses.partition("@")[0].split("/")[:3])
        action = self.actions.get(name)
        if action is None:
            raise WorkflowError(f"nothing stands for {uses} here")
        if not isinstance(action, Path):
            return action(self.workspace, given)
        outputs = self._run_composite(action, given, contexts, result)
        if any(step.outcome == "failure" for step in result.steps):
            raise StepFailed(f"{uses} failed")
        return outputs

    def run_composite(self, action: Path, given: Mapping[str, str]) -> tuple[Mapping[str, str], JobResult]:
        """Runs an action as the only step of a job; its outputs, and its steps."""
        contexts: dict[str, Any] = {"github": {}, "runner": {"temp": str(self.temp)}, "env": {}}
        result = JobResult({})
        return self._run_composite(action, given, contexts, result), result

    def _run_composite(
        self, action: Path, given: Mapping[str, str], contexts: Contexts, result: JobResult
    ) -> Mapping[str, str]:
        document = load(action / "action.yml")
        inner = {
            **contexts,
            "inputs": _inputs(document.get("inputs", {}), given),
            "steps": {},
            "github": contexts["github"] | {"action_path": str(action)},
        }
        self._run_steps(document["runs"]["steps"], inner, result)
        return {key: interpolate(str(output["value"]), inner) for key, output in document["outputs"].items()}


def load(path: Path) -> dict[str, Any]:
    """A workflow or an action. YAML 1.2, in which `on` is a text."""
    document: dict[str, Any] = YAML(typ="safe", pure=True).load(path.read_text())
    return document


def parse_file(text: str) -> dict[str, str]:
    """What a step wrote to GITHUB_OUTPUT or GITHUB_ENV."""
    found, lines = {}, iter(text.splitlines())
    for line in lines:
        name, mark, end = line.partition("<<")
        if mark and "=" not in name:
            found[name] = "\n".join(itertools.takewhile(end.__ne__, lines))
        elif "=" in line:
            name, _, value = line.partition("=")
            found[name] = value
        elif line:
            raise WorkflowError(f"{line!r} is no output")
    return found


def machine_environment() -> dict[str, str]:
    """The variables of this process without those of Assay or of a workflow that it may run in."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("ASSAY_", "GITHUB_", "RUNNER_"))
    }


def _inputs(known: Mapping[str, Mapping[str, Any]], given: Mapping[str, str]) -> dict[str, Any]:
    """Inputs with defaults; raises WorkflowError for unknown and missing ones."""
    for name in given:
        if name not in known:
            raise WorkflowError(f"there is no input {name!r}")
    for name, one in known.items():
        if one.get("required") and name not in given:
            raise WorkflowError(f"the input {name!r} is missing")
    return {name: given.get(name, one.get("default", "")) for name, one in known.items()}


def _env(env: Mapping[str, Any] | None, contexts: Contexts) -> dict[str, str]:
    return {name: interpolate(str(value), contexts) for name, value in (env or {}).items()}


def _status(*, failed: bool) -> dict[str, bool]:
    return {"always": True, "success": not failed, "failure": failed, "cancelled": False}
