"""`assay doctor`: what this machine can test."""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path

import pytest

from bot.config import names
from fuzzing import backends
from tests.bot.cli.command_helpers import assay


@pytest.mark.slow
@pytest.mark.compiler_onnxruntime
@pytest.mark.compiler_openvino
def test_the_compilers_here_are_ready(tmp_path: Path) -> None:
    ran = assay(tmp_path, "doctor", "--json")
    assert ran.code == 0, ran.err
    result = ran.result
    known = {one["backend"]: one for one in result["compilers"]}
    assert set(known) == set(backends.compilers())
    for name in ("onnxruntime", "openvino"):
        one = known[name]
        assert (one["state"], one["version"], one["detail"]) == ("ready", version(name), "")
        assert one["options"] == {name: list(each) for name, each in backends.get(name).options.items()}
    assert known["tensorrt"]["state"] != "ready" or result["slots"]
    assert known["tensorrt"]["detail"] or result["slots"]
    assert result["isolation"]["level"] in ("namespaces", "landlock", "none")
    assert "g++" in [tool["name"] for tool in result["tools"]]
    listed = {one["name"]: one for one in result["sources"]}
    assert set(listed) == set(names.sources())
    assert listed["onnx-node-tests"] == {
        "name": "onnx-node-tests",
        "library": "onnx",
        "absent": [],
        "detail": "",
    }
    assert result["cores"] == len(os.sched_getaffinity(0))
    assert result["memory_bytes"] > 1 << 28
    shown = assay(tmp_path, "doctor")
    assert shown.code == 0
    rows = [line.split() for line in shown.out.splitlines()]
    assert ["compiler", "state", "version", "to", "fix"] in rows
    assert ["onnxruntime", "ready", version("onnxruntime")] in rows
    assert any(
        row[0] == "onnxruntime" and "optimization=all|disabled|basic|extended" in row for row in rows if row
    )
    assert ["onnx-node-tests", "onnx", "ready"] in rows
    assert "isolation: " in shown.out


def test_an_interpreter_without_compilers_says_how_to_get_them(tmp_path: Path, empty_python: Path) -> None:
    ran = assay(tmp_path, "doctor", "--python", empty_python)
    assert ran.code == 1, ran.err
    for name in ("onnxruntime", "openvino"):
        row, choices = [line for line in ran.out.splitlines() if line.startswith(name)]
        assert "onnx" in choices
        assert row.split()[:2] == [name, "missing"]
        assert row.rstrip().endswith(f"-m pip install {name}")
    assert "No compiler works" in ran.out
    result = assay(tmp_path, "doctor", "--python", empty_python, "--json")
    assert result.code == 1
    assert {one["state"] for one in result.result["compilers"]} == {"missing"}


def test_a_broken_compiler_is_told_from_a_missing_one(tmp_path: Path, empty_python: Path) -> None:
    """Found, but its import fails: the reason is shown, not that a file of Python's was in line 10."""
    [site] = empty_python.parent.parent.glob("lib/python*/site-packages")
    module = site / "openvino.py"
    module.write_text("raise ImportError('libtbb.so.12: [cannot] open shared object file')\n")
    try:
        ran = assay(tmp_path, "doctor", "--python", empty_python)
    finally:
        module.unlink()
    assert ran.code == 1
    row = next(line for line in ran.out.splitlines() if line.startswith("openvino"))
    assert "broken" in row
    assert "libtbb.so.12: [cannot] open shared object file" in row


def test_no_interpreter_at_all_is_no_verdict_on_compilers(tmp_path: Path) -> None:
    ran = assay(tmp_path, "doctor", "--python", "/nowhere/python")
    assert (ran.code, ran.out) == (3, "")
    assert "/nowhere/python is no interpreter" in ran.err
