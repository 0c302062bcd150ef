"""A machine for workflows: a repository, the cases of a test, and actions that are not ours."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fuzzing.cases import Corpus, TestCase
from tests.workflows.executor import Action, Executor, JobResult, StepFailed, machine_environment

ROOT = Path(__file__).resolve().parents[2]


def git(folder: Path, *words: str, date: str = "2026-01-01T00:00:00Z") -> str:
    """Runs git as nobody in particular."""
    named = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    plain = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    done = subprocess.run(
        ["git", *words],
        cwd=folder,
        env={**os.environ, **named, **dates, **plain},
        check=True,
        capture_output=True,
    )
    return done.stdout.decode().strip()


@dataclass
class Machine:
    """A runner with a checkout. What the steps of others' actions got is kept.

    given  what replaces inputs of Assay's own action
    """

    folder: Path
    given: dict[str, str] = field(default_factory=dict)
    assay: list[Mapping[str, str]] = field(default_factory=list)
    uploads: dict[str, list[str]] = field(default_factory=dict)
    alerts: list[Path] = field(default_factory=list)

    def __post_init__(self) -> None:
        for folder in (self.workspace, self.temp):
            folder.mkdir()

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    @property
    def temp(self) -> Path:
        return self.folder / "temp"

    @property
    def executor(self) -> Executor:
        """Executes workflows with the real action of Assay, on this interpreter."""
        actions: dict[str, Action | Path] = {
            "OWNER/assay": self._assay,
            "actions/checkout": lambda _folder, _inputs: {},
            "actions/setup-python": lambda _folder, _inputs: {},
            "actions/upload-artifact": self._upload,
            "github/codeql-action/upload-sarif": self._alert,
        }
        environment = machine_environment() | {"ASSAY_DATA_DIR": str(self.folder / "data")}
        return Executor(self.workspace, self.temp, actions, environment)

    def run_action(self, given: Mapping[str, str]) -> tuple[Mapping[str, str], JobResult]:
        """Runs `action.yml` alone, on this interpreter unless another is given."""
        return self.executor.run_composite(ROOT, {"python": sys.executable, **given})

    def cases(self, *cases: TestCase) -> Path:
        """A folder with these cases, on which Assay's action runs from now on."""
        corpus = Corpus(self.folder / "cases")
        for case in cases:
            corpus.add(case)
        self.given |= {"arguments": f"--cases\n{corpus.root}\n--repeats\n1\n", "base": ""}
        return corpus.root

    def _assay(self, _folder: Path, inputs: Mapping[str, str]) -> Mapping[str, str]:
        self.assay.append(inputs)
        outputs, job = self.run_action({**inputs, **self.given})
        if not job.succeeded:
            raise StepFailed(job.log)
        return outputs

    def _upload(self, folder: Path, inputs: Mapping[str, str]) -> Mapping[str, str]:
        found = folder / inputs["path"]
        if not found.exists():
            raise StepFailed(f"no files were found with the path {inputs['path']}")
        self.uploads[inputs["name"]] = sorted(str(one.relative_to(found)) for one in found.rglob("*"))
        return {}

    def _alert(self, folder: Path, inputs: Mapping[str, str]) -> Mapping[str, str]:
        kept = self.folder / f"{len(self.alerts)}.sarif"
        shutil.copyfile(folder / inputs["sarif_file"], kept)
        self.alerts.append(kept)
        return {}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)
