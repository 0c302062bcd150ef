"""ONNX models that lie somewhere as files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import pytest

from fuzzing.cases import Corpus, Recipe, Tensor, TestCase
from fuzzing.migrate.onnx_files import main, migrate
from fuzzing.migrate.sources import Skip

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'
ADD = f"{HEAD} g (float[n, 3] x, float[3] y) => (float[n, 3] z) {{ z = Add(x, y) }}"
CHOSEN = f"{HEAD} g (float[4] x, int64[1] to) => (float[n] y) {{ t = Relu(x) y = Reshape(t, to) }}"
RANDOM = f"{HEAD} g (float[4] x) => (float[4] z) {{ r = RandomNormalLike(x) z = Add(x, r) }}"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(onnx.parser.parse_model(text), path)
    return path


def cases(*paths: Path) -> list[TestCase]:
    found = list(migrate(paths))
    assert all(isinstance(item, TestCase) for item in found), found
    return [item for item in found if isinstance(item, TestCase)]


def skip(path: Path) -> Skip:
    [found] = migrate([path])
    assert isinstance(found, Skip)
    return found


def test_inputs_are_drawn_the_same_each_time(tmp_path: Path) -> None:
    [case] = cases(write(tmp_path / "add.onnx", ADD))
    assert [(name, type(value)) for name, value in case.inputs] == [("x", Recipe), ("y", Recipe)]
    assert [value.array().shape for _, value in case.values() if isinstance(value, Tensor)] == [(2, 3), (3,)]
    assert (case.provenance.test, case.provenance.operator, case.expected) == ("add.onnx", "Add", None)
    assert case.id == cases(tmp_path)[0].id
    assert case.program.to_bytes() == (tmp_path / "add.onnx").read_bytes()


def test_a_model_that_draws_is_compared_by_shapes(tmp_path: Path) -> None:
    [case] = cases(write(tmp_path / "random.onnx", RANDOM))
    assert case.comparison == "shapes"


def test_data_that_lies_beside_a_model_is_its_own(tmp_path: Path) -> None:
    model = write(tmp_path / "net" / "model.onnx", CHOSEN)
    given = np.array([1, -2, 3, -4], np.float32), np.array([4])
    folder = model.parent / "test_data_set_0"
    folder.mkdir()
    for place, value in enumerate(given):
        (folder / f"input_{place}.pb").write_bytes(onnx.numpy_helper.from_array(value).SerializeToString())
    wanted = np.array([1, 0, 3, 0], np.float32)
    (folder / "output_0.pb").write_bytes(onnx.numpy_helper.from_array(wanted).SerializeToString())
    [case] = cases(tmp_path)
    assert case.inputs == (("x", Tensor.of(given[0])), ("to", Tensor.of(given[1])))
    assert case.expected == (("y", Tensor.of(wanted)),)
    assert case.provenance.test == "net/model.onnx"

    write(model.parent / "other.onnx", ADD)  # now it may be either's
    assert [type(item).__name__ for item in migrate([tmp_path])] == ["Skip", "TestCase"]


def test_what_cannot_be_a_case_says_why(tmp_path: Path) -> None:
    good = write(tmp_path / "good.onnx", ADD)
    half, empty = tmp_path / "half.onnx", tmp_path / "empty.onnx"
    half.write_bytes(good.read_bytes()[:-9])
    empty.write_bytes(b"")
    assert "no ONNX" in skip(half).reason
    assert skip(empty).reason == "the model is not valid ONNX"
    chosen = skip(write(tmp_path / "chosen.onnx", CHOSEN))
    assert chosen.reason == "an input decides the shape of an output, and its value is not known"


def test_the_program_prints_what_became_of_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "models" / "add.onnx", ADD)
    (tmp_path / "models" / "bad.onnx").write_bytes(b"no model")
    assert main(["--corpus", str(tmp_path / "corpus"), str(tmp_path / "models")]) == 0
    told = capsys.readouterr().out
    assert '"event": "skip", "test": "bad.onnx"' in told
    assert '"cases": 1, "new": 1' in told
    assert len(list(Corpus(tmp_path / "corpus").ids())) == 1
