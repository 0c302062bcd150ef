"""Interpreters taken as they are."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bot.config import parse_config
from bot.errors import ProvisionError, UsageError
from bot.toolchains import provision, registry
from bot.toolchains.existing import existing_spec


@pytest.mark.compiler_onnxruntime
def test_this_interpreter(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", exc_type=ImportError)
    steps: list[str] = []
    ready = provision(existing_spec("onnxruntime"), tmp_path, steps.append)
    assert ready.python == sys.executable
    assert list(ready.versions) == ["python", "onnxruntime", "numpy"]
    assert ready.requirements[0] == f"onnxruntime=={ready.versions['onnxruntime']}"
    assert ready.digest == provision(existing_spec("onnxruntime"), tmp_path, steps.append).digest
    assert ready.digest != ready.spec.digest  # it speaks of what was found


def test_no_interpreter(tmp_path: Path) -> None:
    with pytest.raises(ProvisionError, match="is no interpreter; give the path of a python"):
        provision(existing_spec("openvino", str(tmp_path / "python")), tmp_path, print)


def test_an_interpreter_without_the_compiler(tmp_path: Path) -> None:
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\necho \"ModuleNotFoundError: No module named 'openvino'\" >&2\nexit 1\n")
    fake.chmod(0o755)
    with pytest.raises(ProvisionError, match=r"cannot import openvino \(exit status 1\):\nModuleNotFound"):
        provision(existing_spec("openvino", str(fake)), tmp_path, print)


def test_no_repository_can_name_one() -> None:
    assert "existing" not in registry.offered()
    config = parse_config(b"version: 1\nbackend: openvino\n")
    with pytest.raises(UsageError):
        registry.get("existing").resolve(config, lambda _: None)


def test_unknown_provisioners_are_told() -> None:
    with pytest.raises(UsageError, match="there are: existing, release"):
        registry.get("magic")
