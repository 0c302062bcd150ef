"""ONNX models given to commands as they lie on disk."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import pytest

from tests.bot.cli.command_helpers import assay

pytestmark = pytest.mark.compiler_onnxruntime
MODEL = '<ir_version: 8, opset_import: ["" : 17]> g (float[3] x) => (float[3] z) { z = Neg(x) }'

ADD = '<ir_version: 8, opset_import: ["" : 17]> g (float[300] x) => (float[300] z) { z = Add(x, w) }'


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
    requested = ("run", "--backend", "onnxruntime", "--cases", models, "--json")
    ran = assay(tmp_path / "data", *requested)
    assert ran.code == 0, ran.err
    assert ran.result["verdicts"]["head"] == {"pass": 1}
    assert [source["source"] for source in ran.result["sources"]] == ["models"]
    assert "left out half.onnx: the file is no ONNX model (Error parsing" in ran.err


def test_a_model_is_a_case(tmp_path: Path, models: Path) -> None:
    ran = assay(tmp_path / "data", "replay", models / "good.onnx", "--backend", "onnxruntime", "--json")
    assert ran.code == 0, ran.err
    assert [one["verdict"] for one in ran.result["toolchains"]] == ["pass"]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("half.onnx", "the file is no ONNX model"),
        ("none.onnx", "there is no file"),
        ("", "is a folder, not a case"),
    ],
)
def test_what_is_no_model_is_told(tmp_path: Path, models: Path, name: str, why: str) -> None:
    ran = assay(tmp_path / "data", "replay", models / name, "--backend", "onnxruntime")
    assert (ran.code, ran.out) == (2, "")
    assert why in ran.err
    assert "Traceback" not in ran.err


@pytest.fixture
def zoo(models: Path) -> Path:
    """A model with two data sets."""
    for number in (0, 3):
        folder = models / "zoo" / f"test_data_set_{number}"
        folder.mkdir(parents=True)
        given = np.full(3, number, np.float32)
        for name, value in (("input_0", given), ("output_0", -given)):
            (folder / f"{name}.pb").write_bytes(onnx.numpy_helper.from_array(value).SerializeToString())
    shutil.copy(models / "good.onnx", models / "zoo" / "net.onnx")
    return models / "zoo" / "net.onnx"


@pytest.mark.slow
@pytest.mark.parametrize("command", ["replay", "compare"])
def test_each_data_set_of_a_model_is_run(tmp_path: Path, zoo: Path, command: str) -> None:
    requested = (command, zoo, "--backend", "onnxruntime")
    ran = assay(tmp_path / "data", *requested, "--json")
    assert ran.code == 0, ran.err
    names = ["net.onnx/test_data_set_0", "net.onnx/test_data_set_3"]
    assert [one["test"] for one in ran.result["cases"]] == names
    shown = assay(tmp_path / "data", *requested)
    assert [line.partition(" ")[0] for line in shown.out.splitlines() if line.startswith("net")] == names
    one = assay(tmp_path / "data", *requested, "--data-set", "3", "--json")
    assert one.result["test"] == names[1]


@pytest.mark.parametrize(
    "requested",
    [("reduce",), ("localize",), ("bisect", "--releases", "onnxruntime:1.30..1.31")],
    ids=lambda requested: requested[0],
)
def test_one_data_set_is_asked_for_where_one_is_worked_on(
    tmp_path: Path, zoo: Path, requested: tuple[str, ...]
) -> None:
    ran = assay(tmp_path / "data", *requested, zoo, "--backend", "onnxruntime")
    assert ran.code == 2
    assert "net.onnx has 2 data sets (0, 3); choose one" in ran.err
    assert "--data-set 0" in ran.err


@pytest.mark.parametrize(
    ("case", "number", "why"),
    [
        ("zoo/net.onnx", "1", "net.onnx has no data set 1; it has 0, 3"),
        ("good.onnx", "0", "good.onnx has no data set 0; it has none"),
        ("12345678", "0", "--data-set needs an ONNX model, and 12345678 is not one"),
    ],
)
def test_a_data_set_that_is_not_there_is_told(
    tmp_path: Path, zoo: Path, case: str, number: str, why: str
) -> None:
    name = zoo.parents[1] / case if case.endswith(".onnx") else case
    ran = assay(tmp_path / "data", "replay", name, "--data-set", number)
    assert ran.code == 2
    assert why in ran.err


@pytest.mark.slow
def test_what_changed_is_run_as_it_is_now(tmp_path: Path, models: Path) -> None:
    """External data, too: the model that refers to them is the same file."""
    path = models / "outside" / "net.onnx"
    path.parent.mkdir()
    for number in range(2):
        model = onnx.parser.parse_model(ADD)
        weights = np.full(300, number, np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
        onnx.save(model, path, save_as_external_data=True, location="net.data", size_threshold=0)
        requested = ("run", "--backend", "onnxruntime", "--cases", path.parent, "--json")
        ran = assay(tmp_path / "data", *requested)
        assert ran.result["verdicts"]["head"] == {"pass": 1}, ran.err
    sets = [one for one in (tmp_path / "data" / "models").iterdir() if one.is_dir()]
    assert len(sets) == 2


def test_the_same_model_twice_is_one_case(tmp_path: Path, models: Path) -> None:
    (models / "link.onnx").symlink_to("good.onnx")
    ran = assay(tmp_path / "data", "run", "--backend", "onnxruntime", "--cases", models, "--json")
    assert ran.result["verdicts"]["head"] == {"pass": 1}
    assert "left out link.onnx: same case as good.onnx" in ran.err


def test_where_data_would_help_it_is_said(tmp_path: Path) -> None:
    own = MODEL.replace("17]", '17, "com.acme" : 1]').replace("Neg", "com.acme.Magic")
    path = tmp_path / "own.onnx"
    path.write_bytes(onnx.parser.parse_model(own).SerializeToString())
    ran = assay(tmp_path / "data", "compare", path)
    assert ran.code == 2
    assert "an operator is not one of the standard's, and no outputs lie beside the model" in ran.err
    assert "beside the model: test_data_set_0/input_0.pb" in ran.err


def test_another_file_is_no_corpus(tmp_path: Path, models: Path) -> None:
    (models / "notes.txt").write_text("none")
    ran = assay(tmp_path / "data", "run", "--backend", "onnxruntime", "--cases", models / "notes.txt")
    assert ran.code == 2
    assert "is not an ONNX model" in ran.err
