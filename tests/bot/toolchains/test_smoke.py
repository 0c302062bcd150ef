"""Which models the smoke test of a toolchain has."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bot.errors import CheckUnfinishedError
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


def answer(monkeypatch: pytest.MonkeyPatch, *results: tuple[str, str]) -> None:
    """The smoke test prints these verdicts and messages."""

    def run_tool(_module: str, _arguments: object, on_event: Callable[[dict[str, str]], None]) -> None:
        for verdict, message in results:
            on_event({"test": "relu(x + 1)", "verdict": verdict, "phase": "compile", "message": message})

    monkeypatch.setattr(smoke, "run_tool", run_tool)


@pytest.mark.parametrize(
    "result",
    [
        ("hang", "no end after 120 s"),
        ("out_of_memory", "killed"),
        ("invalid", "the reference does not run"),
        ("crash", "OSError: [Errno 28] No space left on device"),
    ],
)
def test_what_a_busy_machine_does_is_no_failure_of_the_commit(
    monkeypatch: pytest.MonkeyPatch, result: tuple[str, str]
) -> None:
    answer(monkeypatch, ("pass", ""), result)
    with pytest.raises(CheckUnfinishedError, match="not known") as caught:
        smoke.smoke_test(spec("openvino", "openvino==2026.1"), Path(sys.executable))
    assert caught.value.transient


def test_a_crash_beside_a_hang_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, ("hang", "no end after 120 s"), ("crash", "KeyError: relu"))
    why = smoke.smoke_test(spec("openvino", "openvino==2026.1"), Path(sys.executable))
    assert "KeyError: relu" in why
    assert "no end" in why


def test_what_the_models_import_is_compiled_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No worker can write bytecode, and a compiler's import alone loads neither its frontends nor torch."""
    toolchain = tmp_path / "toolchain"
    lazy, outside = toolchain / "lib" / "lazy.py", tmp_path / "outside.py"
    for source in (lazy, outside):
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text("x = 1\n")

    def run_tool(_module: str, _arguments: object, on_event: Callable[[dict[str, object]], None]) -> None:
        on_event({"test": "relu(x + 1)", "verdict": "pass", "phase": "run", "message": ""})
        on_event({"sources": [str(lazy), str(outside), "no/such.py", 7, f"{toolchain}/\0"]})

    monkeypatch.setattr(smoke, "run_tool", run_tool)
    python = toolchain / "bin" / "python"
    assert smoke.smoke_test(spec("openvino", "openvino==2026.1"), python) == ""
    assert [path.name.partition(".")[0] for path in tmp_path.rglob("*.pyc")] == ["lazy"]
    monkeypatch.setattr(smoke, "compile_bytecode", lambda *_: pytest.fail("it is there"))
    assert smoke.smoke_test(spec("openvino", "openvino==2026.1"), python) == ""
