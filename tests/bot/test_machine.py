"""What this machine can test: every state a compiler can be in."""

from __future__ import annotations

import os
import sys
import textwrap
from pathlib import Path

import pytest

from bot import machine
from bot.errors import ProvisionError
from bot.machine import inspect_machine
from fuzzing import backends
from tests.bot.cli.command_helpers import create_empty_venv


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """An interpreter that holds nothing yet."""
    return create_empty_venv(tmp_path / "venv")


def install(python: Path, name: str, code: str) -> None:
    [site] = python.parent.parent.glob("lib/python*/site-packages")
    (site / f"{name}.py").write_text(code)
    info = site / f"{name}-1.2.3.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2.3\n")


def states(python: Path) -> dict[str, tuple[str, str]]:
    return {one.backend: (one.state, one.version) for one in inspect_machine(str(python)).compilers}


def test_missing_ready_and_broken(python: Path) -> None:
    assert states(python) == dict.fromkeys(backends.compilers(), ("missing", ""))
    install(python, "openvino", "")
    install(python, "onnxruntime", "raise OSError('libcudart.so: cannot open')")
    install(python, "tensorrt", "")
    found = inspect_machine(str(python))
    known = {one.backend: one for one in found.compilers}
    assert (known["openvino"].state, known["openvino"].version) == ("ready", "1.2.3")
    assert known["onnxruntime"].state == "broken"
    assert known["onnxruntime"].detail.splitlines()[-1] == "OSError: libcudart.so: cannot open"
    if not found.slots:
        assert known["tensorrt"].state == "no_device"
        assert "needs a CUDA device" in known["tensorrt"].detail
        assert [one.backend for one in found.testable] == ["openvino"]
    assert known["iree"].detail.endswith("-m pip install iree-base-compiler iree-base-runtime onnx")
    assert known["openvino"].devices == ("CPU", "GPU")
    assert known["openvino"].options["precision"][0] == "f32"
    assert "onnx" in known["openvino"].frontends
    assert found.isolation.level in ("namespaces", "landlock", "none")
    assert found.isolation.level not in found.isolation.refused


@pytest.mark.parametrize("code", ["import no_such_numpy", "import os; os.abort()", "raise SystemExit(0)"])
def test_a_compiler_that_is_there_is_broken_not_missing(code: str, python: Path) -> None:
    """Whoever reads "missing" installs it again, which does not bring what it lacks."""
    install(python, "openvino", code)
    assert states(python)["openvino"] == ("broken", "")


def test_no_interpreter_is_no_state_of_a_compiler(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no program")
    for python in (tmp_path / "nowhere", tmp_path / "file"):
        with pytest.raises(ProvisionError, match="is no interpreter"):
            inspect_machine(str(python))


SMI = """\
#!{python}
import sys
assert sys.argv[1:] == ["--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
print({text!r})
sys.exit({code})
"""


@pytest.mark.parametrize(
    ("text", "code", "names"),
    [
        ("NVIDIA H200, 143771 MiB, 570.1\nNVIDIA H200, 143771 MiB, 570.1", 0, ["NVIDIA H200"] * 2),
        ("No devices were found", 0, []),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", 9, []),
    ],
)
def test_gpus_are_what_their_driver_says(
    text: str, code: int, names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(textwrap.dedent(SMI).format(python=sys.executable, text=text, code=code))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert [gpu.name for gpu in machine._gpus()] == names


def test_a_machine_without_git_is_told_what_it_is_for(
    python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = inspect_machine(str(python))
    git, compiler = found.tools
    assert (git.name, git.path, git.why) == ("git", "", "reads the commits of a target")
    assert (compiler.name, compiler.path) == ("g++", "")
    assert found.gpus == ()
