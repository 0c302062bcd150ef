"""`assay replay`: one stored case, again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fuzzing import backends
from fuzzing.cases import Corpus
from tests.bot.cli.command_helpers import GOOD, WRONG, assay

ORT = ("--backend", "onnxruntime")
BOTH = (*ORT, "--backend", "openvino")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder with one case that passes and one that cannot."""
    corpus = Corpus(tmp_path / "corpus")
    corpus.add(GOOD)
    corpus.add(WRONG)
    return tmp_path


@pytest.mark.slow
@pytest.mark.compiler_onnxruntime
@pytest.mark.compiler_openvino
def test_a_case_that_passes_everywhere(data: Path) -> None:
    ran = assay(data, "replay", GOOD.id[:12], "--json")
    assert ran.code == 0, ran.err
    result = ran.result
    assert (result["case"], result["test"]) == (GOOD.id, "test_add_good")
    verdicts = {one["backend"]: one["verdict"] for one in result["toolchains"]}
    assert {"onnxruntime", "openvino"} <= verdicts.keys() <= set(backends.compilers())
    assert set(verdicts.values()) == {"pass"}
    assert all(one["outcomes"][0]["case"] == GOOD.id for one in result["toolchains"])


@pytest.mark.compiler_onnxruntime
@pytest.mark.compiler_openvino
def test_a_wrong_expectation_is_found_by_every_compiler(data: Path) -> None:
    ran = assay(data, "replay", *BOTH, WRONG.id[:12])
    assert ran.code == 1, ran.err
    assert "test_add_wrong (Add; onnx 1)" in ran.out
    assert WRONG.id in ran.out
    for backend in ("onnxruntime", "openvino"):
        assert f"{backend}: wrong_result" in ran.out
    assert "first fails at: kernels" in ran.out, "the first rung of onnxruntime's ablation"
    assert "The smallest tolerance that passes" in ran.out
    assert "worst at [0]: 11.0 instead of 16.0" in ran.out
    assert "openvino 20" in ran.out


@pytest.mark.compiler_onnxruntime
def test_by_folder_and_in_as_many_processes_as_asked(data: Path) -> None:
    folder = Corpus(data / "corpus").folder(WRONG.id)
    ran = assay(data / "elsewhere", "replay", *ORT, folder, "--repeats", "2", "--json")
    assert ran.code == 1, ran.err
    [one] = ran.result["toolchains"]
    assert [outcome["verdict"] for outcome in one["outcomes"]] == ["wrong_result"] * 2
    shown = assay(data / "elsewhere", "replay", *ORT, folder, "--repeats", "2")
    assert "wrong_result in 2 of 2 runs" in shown.out


@pytest.mark.compiler_onnxruntime
def test_by_option_and_profile(data: Path) -> None:
    how = ("--option", "optimization=disabled", "--profile", "graph-fuzz")
    ran = assay(data, "replay", *ORT, WRONG.id[:12], *how, "--json")
    assert ran.code == 1, ran.err
    [outcome] = ran.result["toolchains"][0]["outcomes"]
    assert outcome["configuration"] == "optimization=disabled profile=graph-fuzz"
    assert outcome["verdict"] == "wrong_result"


@pytest.mark.compiler_onnxruntime
def test_from_another_corpus(data: Path) -> None:
    ran = assay(data / "other", "replay", *ORT, GOOD.id[:8], "--corpus", data / "corpus")
    assert ran.code == 0, ran.err


def test_unknown_and_odd_names_are_mistakes(data: Path, tmp_path: Path) -> None:
    other = next(digits for digits in ("0000", "1111") if not GOOD.id.startswith(digits))
    for name, helps in (
        (other, f"0 cases in {data / 'corpus'} begin with {other}"),
        ("xyz", "is not the beginning of a case id"),
        (str(tmp_path / "nowhere"), "is not the beginning of a case id"),
    ):
        ran = assay(data, "replay", *ORT, name)
        assert (ran.code, ran.out) == (2, "")
        assert helps in ran.err
        assert "  next: " in ran.err


def test_an_unknown_backend_or_device_is_a_mistake(data: Path) -> None:
    for argv, helps in (
        (("--backend", "onxruntime"), "onnxruntime, openvino"),
        ((*ORT, "--device", "NPU"), "choose from CPU"),
        (("--backend", "inductor"), "takes TorchCall, TorchProgram, EquivalentPair, not OnnxModel"),
        ((*ORT, "--option", "optimization=fast"), "is one of all, disabled, basic, extended"),
        ((*ORT, "--profile", "defualt"), "did you mean 'default'? There are: default"),
        ((*ORT, "--option", "optimisation=all"), "did you mean 'optimization'?"),
    ):
        ran = assay(data, "replay", GOOD.id[:12], *argv)
        assert (ran.code, ran.out) == (2, "")
        assert helps in ran.err


@pytest.mark.parametrize("kind", ["manifest", "program", "content"])
def test_a_corrupt_case_is_a_mistake_that_names_it(kind: str, data: Path) -> None:
    folder = Corpus(data / "corpus").folder(GOOD.id)
    if kind == "manifest":
        (folder / "case.json").write_text('{"format": 1')
    elif kind == "program":
        (folder / "model.onnx").write_bytes(b"short")
    else:
        manifest = json.loads((folder / "case.json").read_bytes())
        manifest["comparison"] = "shapes"
        (folder / "case.json").write_text(json.dumps(manifest))
    ran = assay(data, "replay", *ORT, GOOD.id)
    assert (ran.code, ran.out) == (2, "")
    assert str(folder) in ran.err
    assert "Traceback" not in ran.err


def test_an_interpreter_without_compilers(data: Path, empty_python: Path) -> None:
    requested = assay(data, "replay", *ORT, GOOD.id[:12], "--python", empty_python)
    assert (requested.code, requested.out) == (3, "")
    assert "cannot import onnxruntime" in requested.err
    unasked = assay(data, "replay", GOOD.id[:12], "--python", empty_python)
    assert (unasked.code, unasked.out) == (2, "")
    assert "assay doctor" in unasked.err
