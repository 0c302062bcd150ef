from __future__ import annotations

import json
from pathlib import Path

import pytest

from fuzzing.cases import Corpus, Provenance, Tensor, TensorArg, TestCase, TorchCall
from fuzzing.prioritize.coverage_measurement import load, main, package_folder

BACKEND = """
import os
from typing import ClassVar
from fuzzing.backends.base import Backend, register


@register
class Converting(Backend):
    name: ClassVar[str] = "converting"
    package: ClassVar[str] = "numpy"
    import_name: ClassVar[str] = "numpy"
    kinds: ClassVar[tuple] = ("TorchCall",)

    def load(self, device, options):
        import toy_frontend.converters

    def convert(self, program, inputs):
        import toy_frontend.converters
        return toy_frontend.converters.convert(program.api)
"""
CONVERTERS = """import os


def convert(api):
    if api == "torch.abs":
        return 1
    if api == "torch.neg":
        os._exit(3)
    raise ValueError(api)
"""


@pytest.fixture
def frontend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    package = tmp_path / "path" / "toy_frontend"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "converters.py").write_text(CONVERTERS)
    (tmp_path / "backend.py").write_text(BACKEND)
    monkeypatch.syspath_prepend(str(tmp_path / "path"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "path"))
    return tmp_path


def _case(api: str) -> TestCase:
    provenance = Provenance("toy", api, api, "torch", "1")
    return TestCase(TorchCall(api, (TensorArg("x"),)), (("x", Tensor("int8", (1,), b"a")),), provenance)


def test_lines_are_told_by_case_and_a_death_costs_one(
    frontend: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    cases = {api: _case(api) for api in ("torch.abs", "torch.neg", "torch.sin")}
    for case in cases.values():
        Corpus(frontend / "corpus").add(case)
    arguments = ["--backend", str(frontend / "backend.py"), "--package", "toy_frontend"]
    assert main([*arguments, "--corpus", str(frontend / "corpus")]) == 0
    events = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert events[-1] == {"event": "end", "cases": 3, "died": 1}
    (frontend / "told").write_text("".join(json.dumps(event) + "\n" for event in events))
    coverage = load(frontend / "told")
    file = str(Path(package_folder("toy_frontend")) / "converters.py")
    assert coverage == {
        cases["torch.abs"].id: frozenset({(file, 5), (file, 6)}),
        cases["torch.sin"].id: frozenset({(file, 5), (file, 7), (file, 9)}),
    }


def test_a_package_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--backend", "tvm", "--package", "no.such", "--corpus", str(tmp_path)]) == 2
    assert "no Python package no.such" in capsys.readouterr().err
