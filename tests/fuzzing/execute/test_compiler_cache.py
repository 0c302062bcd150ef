"""A backend's cache: there for one that asks, one for each toolchain and release, and outliving workers."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from fuzzing.cases import OnnxModel, Provenance, Tensor, TestCase
from fuzzing.errors import ToolchainError
from fuzzing.execute.compiler_cache import resolve_cache_folder
from fuzzing.execute.supervisor import Supervisor
from fuzzing.execute.worker_command import WorkerCommand

PLAIN = str(Path(__file__).parent / "misbehaving_backend.py")
#: A backend that keeps a tally in its cache, a note in its scratch folder, and says what it found there.
KEEPER = """
import os
from pathlib import Path
import numpy as np
from fuzzing.backends.base import Backend, register
from fuzzing.cases.values import Tensor

@register
class Keeper(Backend):
    name = "keeper"
    package = import_name = "numpy"
    environment = {"KEEPER_STORE": "{cache}/store", "KEEPER_NOTES": "{scratch}/notes-{not this}"}

    def load(self, device, options):
        Path(os.environ["KEEPER_STORE"]).mkdir(exist_ok=True)

    def convert(self, program, inputs):
        return program

    def compile(self, model):
        return model

    def run(self, executable, inputs):
        tally = Path(os.environ["ASSAY_CACHE"]) / "store" / "tally"
        tally.write_text((tally.read_text() if tally.exists() else "") + "x")
        facts = [tally.read_text(), os.environ["KEEPER_NOTES"], os.environ["HOME"], os.environ["TMPDIR"]]
        return [("facts", Tensor.of(np.array(facts, object)))]
"""


def keeper(folder: Path) -> WorkerCommand:
    path = folder / "keeper.py"
    path.write_text(KEEPER)
    return WorkerCommand(sys.executable, str(path), cache=str(folder / "deep" / "cache"))


def test_a_cache_outlives_its_workers_and_a_scratch_folder_does_not(tmp_path: Path) -> None:
    command = keeper(tmp_path)
    case = TestCase(OnnxModel(b"x"), (), Provenance("tests", "", "", "", ""))
    supervisor: Supervisor[int] = Supervisor(command, fresh=True)
    seen = []
    for _, execution in supervisor.run((n, case) for n in range(3)):
        assert execution.ending == "returned", execution.message
        [(_, value)] = execution.outputs
        assert isinstance(value, Tensor)
        seen.append([str(text) for text in value.array()])
    assert [facts[0] for facts in seen] == ["x", "xx", "xxx"]
    for _, notes, home, temporary in seen:
        assert notes == f"{home}/notes-{{not this}}"
        assert temporary == home
        assert not Path(home).exists()
    assert (Path(command.cache) / "store" / "tally").read_text() == "xxx"


def test_a_backend_that_does_not_ask_has_none() -> None:
    assert resolve_cache_folder(WorkerCommand(sys.executable, PLAIN)) == ""


def test_each_toolchain_has_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    command = replace(keeper(tmp_path), cache="")
    here = Path(resolve_cache_folder(command))
    assert here.is_dir()
    assert here.parent == tmp_path / "home" / "assay"
    assert here.name.startswith("keeper-")
    assert resolve_cache_folder(command) == str(here)
    assert resolve_cache_folder(replace(command, python="/elsewhere/bin/python")) != str(here)


def test_each_release_of_a_compiler_has_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    site = tmp_path / "venv" / "lib" / "python3.11" / "site-packages"
    command = replace(keeper(tmp_path), cache="", python=str(tmp_path / "venv" / "bin" / "python"))
    folders = []
    for version in ("2.0.0", "2.1.0"):
        info = site / "numpy-0.dist-info"
        info.mkdir(parents=True, exist_ok=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: numpy\nVersion: {version}\n")
        folders.append(resolve_cache_folder(command))
    assert folders[0] != folders[1]


def test_a_folder_that_cannot_be_made_is_the_machines_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    command = WorkerCommand(sys.executable, PLAIN, cache=str(tmp_path / "file" / "cache"))
    with pytest.raises(ToolchainError, match="XDG_CACHE_HOME"):
        resolve_cache_folder(command)
