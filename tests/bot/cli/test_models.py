"""ONNX models given to commands as they lie on disk."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

from tests.bot.cli.commands_kit import assay

pytestmark = pytest.mark.compiler_onnxruntime
MODEL = '<ir_version: 8, opset_import: ["" : 17]> g (float[3] x) => (float[3] z) { z = Neg(x) }'


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """A folder with a good model and half a one."""
    folder = tmp_path / "models"
    folder.mkdir()
    data = onnx.parser.parse_model(MODEL).SerializeToString()
    (folder / "good.onnx").write_bytes(data)
    (folder / "half.onnx").write_bytes(data[:-9])
    return folder


def test_a_folder_of_models_is_run(tmp_path: Path, models: Path) -> None:
    asked = ("run", "--backend", "onnxruntime", "--cases", models, "--json")
    ran = assay(tmp_path / "data", *asked)
    assert ran.code == 0, ran.err
    assert ran.told["verdicts"]["head"] == {"pass": 1}
    assert [source["source"] for source in ran.told["sources"]] == ["models"]
    assert "left out half.onnx: the file or what lies beside it is no ONNX" in ran.err


def test_a_model_is_a_case(tmp_path: Path, models: Path) -> None:
    ran = assay(tmp_path / "data", "replay", models / "good.onnx", "--backend", "onnxruntime", "--json")
    assert ran.code == 0, ran.err
    assert [one["verdict"] for one in ran.told["toolchains"]] == ["pass"]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("half.onnx", "no ONNX"),
        ("none.onnx", "there is no file"),
    ],
)
def test_what_is_no_model_is_told(tmp_path: Path, models: Path, name: str, why: str) -> None:
    ran = assay(tmp_path / "data", "replay", models / name, "--backend", "onnxruntime")
    assert (ran.code, ran.out) == (2, "")
    assert why in ran.err
    assert "Traceback" not in ran.err


def test_another_file_is_no_corpus(tmp_path: Path, models: Path) -> None:
    (models / "notes.txt").write_text("none")
    ran = assay(tmp_path / "data", "run", "--backend", "onnxruntime", "--cases", models / "notes.txt")
    assert ran.code == 2
    assert "is no ONNX model" in ran.err
