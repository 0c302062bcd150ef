"""Which models the smoke test of a toolchain has."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bot.toolchains import ToolchainSpec, smoke


def spec(backend: str, *requirements: str) -> ToolchainSpec:
    return ToolchainSpec("release", backend, requirements, backend)


def test_a_model_of_each_library_that_is_there() -> None:
    assert "TorchProgram" not in smoke.testable_kinds(spec("openvino", "openvino==2026.1"))
    kinds = smoke.testable_kinds(spec("openvino", "openvino==2026.1", "torch==2.13.0"))
    assert {"OnnxModel", "TorchProgram"} <= set(kinds)


def test_a_compiler_for_gpus_alone_is_not_tried_where_it_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(smoke, "run_tool", lambda *_: pytest.fail("there may be no GPU here"))
    assert smoke.smoke_test(spec("tensorrt", "tensorrt==10.9"), Path(sys.executable)) == ""
