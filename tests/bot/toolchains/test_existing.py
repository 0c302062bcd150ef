"""Interpreters taken as they are."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

from bot.config import parse_config
from bot.config.names import provisioners
from bot.errors import CheckUnfinishedError, ProvisionError, UsageError
from bot.toolchains import probe_script, provision, registry
from bot.toolchains.existing import existing_spec
from bot.toolchains.probe import probe
from fuzzing.errors import UnknownNameError
from fuzzing.execute.sandbox import launcher
from tests.bot.cli.command_helpers import create_empty_venv


@pytest.mark.compiler_onnxruntime
def test_this_interpreter(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", exc_type=ImportError)
    steps: list[str] = []
    ready = provision(existing_spec("onnxruntime"), tmp_path, steps.append)
    assert ready.python == sys.executable
    assert list(ready.versions)[:3] == ["python", "onnxruntime", "numpy"]
    assert ready.requirements[0] == f"onnxruntime=={ready.versions['onnxruntime']}"
    assert ready.digest == provision(existing_spec("onnxruntime"), tmp_path, steps.append).digest
    assert ready.digest != ready.spec.digest  # it speaks of what was found


def test_a_package_edited_in_place_is_another_toolchain(tmp_path: Path) -> None:
    """Verdicts are kept by digest: one of an upgraded or edited package must never be served stale."""
    python = create_empty_venv(tmp_path / "venv")
    [site] = python.parent.parent.glob("lib/python*/site-packages")
    module, neighbor = site / "openvino" / "__init__.py", site / "neighbor.py"
    module.parent.mkdir()
    module.write_text("x = 1\n")
    neighbor.write_text("")
    python_ = str(python)

    def digest() -> str:
        return provision(existing_spec("openvino", python_), tmp_path, lambda _: None).digest

    first = digest()
    assert digest() == first, "bytecode that a run leaves behind is no change"
    module.write_text("x = 2\n")
    os.utime(module, ns=(0, 1))
    edited = digest()
    assert edited != first
    neighbor.write_text("y = 1\n")
    assert digest() not in (first, edited), "what is installed beside it counts too"


def test_a_compiler_outside_of_site_packages_counts_file_by_file(tmp_path: Path) -> None:
    """A checkout that is worked on, as `pip install -e` leaves it."""
    python = create_empty_venv(tmp_path / "venv")
    [site] = python.parent.parent.glob("lib/python*/site-packages")
    checkout = tmp_path / "checkout" / "openvino"
    checkout.mkdir(parents=True)
    (checkout / "__init__.py").write_text("")
    (site / "checkout.pth").write_text(f"{checkout.parent}\n")
    first = probe(python, "openvino", extra_modules=["openvino"]).content
    assert first == probe(python, "openvino", extra_modules=["openvino"]).content
    (checkout / "passes.py").write_text("x = 1\n")
    assert probe(python, "openvino", extra_modules=["openvino"]).content != first
    assert probe(python, "openvino").content == "", "a release is named by its pins alone"


def test_no_interpreter(tmp_path: Path) -> None:
    with pytest.raises(ProvisionError, match="is no interpreter; give the path of a python"):
        provision(existing_spec("openvino", str(tmp_path / "python")), tmp_path, print)


def test_an_interpreter_without_the_compiler(tmp_path: Path) -> None:
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\necho \"ModuleNotFoundError: No module named 'openvino'\" >&2\nexit 1\n")
    fake.chmod(0o755)
    with pytest.raises(ProvisionError, match=r"cannot import openvino \(exit status 1\):\nModuleNotFound"):
        provision(existing_spec("openvino", str(fake)), tmp_path, print)


@pytest.mark.parametrize("module", [probe_script, launcher], ids=["the probe", "the sandbox"])
def test_a_missing_file_of_ours_is_nobodys_fault(
    module: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Assay may be upgraded while a toolchain is made; the commit would have been blamed from then on."""
    monkeypatch.setattr(module, "__file__", str(tmp_path / "gone.py"))
    with pytest.raises(CheckUnfinishedError, match=r"Assay's own file .*gone\.py is gone") as caught:
        probe(Path(sys.executable), "json")
    assert caught.value.transient


def test_no_repository_can_name_one() -> None:
    assert "existing" not in provisioners()
    config = parse_config(b"version: 1\nbackend: openvino\n")
    with pytest.raises(UsageError):
        registry.get("existing").resolve(config, lambda _: None)


def test_unknown_provisioners_are_told() -> None:
    with pytest.raises(
        UnknownNameError, match="there are: artifact, existing, index, overlay, release, source"
    ):
        registry.get("magic")
