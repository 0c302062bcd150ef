"""ONNX models that lie somewhere as files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper
import onnx.parser
import pytest

from fuzzing.cases import Corpus, Recipe, Sequence, Tensor, TestCase
from fuzzing.migrate.onnx_files import main, migrate
from fuzzing.migrate.sources import Skip

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'
ADD = f"{HEAD} g (float[n, 3] x, float[3] y) => (float[n, 3] z) {{ z = Add(x, y) }}"
CHOSEN = f"{HEAD} g (float[4] x, int64[1] to) => (float[n] y) {{ t = Relu(x) y = Reshape(t, to) }}"
NEG = f"{HEAD} g (float[3] x) => (float[3] z) {{ z = Neg(x) }}"
RANDOM = f"{HEAD} g (float[4] x) => (float[4] z) {{ r = RandomNormalLike(x) z = Add(x, r) }}"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(onnx.parser.parse_model(text), path)
    return path


def cases(*paths: Path) -> list[TestCase]:
    found = list(migrate(paths))
    assert all(isinstance(item, TestCase) for item in found), found
    return [item for item in found if isinstance(item, TestCase)]


def give(folder: Path, what: str, *values: Any) -> None:
    """Writes a data set's files."""
    folder.mkdir(exist_ok=True)
    for place, value in enumerate(values):
        if not isinstance(value, bytes):
            to_proto = (
                onnx.numpy_helper.from_list if isinstance(value, list) else onnx.numpy_helper.from_array
            )
            value = to_proto(value).SerializeToString()
        (folder / f"{what}_{place}.pb").write_bytes(value)


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
    assert case.provenance.test == "net/model.onnx/test_data_set_0"

    write(model.parent / "other.onnx", ADD)  # now it may be either's
    assert [type(item).__name__ for item in migrate([tmp_path])] == ["Skip", "TestCase"]
    assert isinstance(skip(model), Skip), "asked for alone, it is not alone for that"


def test_each_data_set_is_a_case_and_what_has_no_outputs_is_left_to_the_library(tmp_path: Path) -> None:
    model = write(tmp_path / "model.onnx", NEG)
    for number in (0, 2, 10):
        give(tmp_path / f"test_data_set_{number}", "input", np.full(3, number, np.float32))
    give(tmp_path / "test_data_set_2", "output", np.full(3, -2, np.float32))
    (tmp_path / "test_data_set_old").mkdir()
    found = cases(model)
    assert [case.provenance.test.rpartition("_")[2] for case in found] == ["0", "2", "10"]
    assert [case.expected for case in found] == [
        None,
        (("z", Tensor.of(np.full(3, -2, np.float32))),),
        None,
    ]


def test_a_sequence_is_read_as_one(tmp_path: Path) -> None:
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("SequenceAt", ["s", "i"], ["z"])],
        "g",
        [
            onnx.helper.make_tensor_sequence_value_info("s", onnx.TensorProto.FLOAT, [2]),
            onnx.helper.make_tensor_value_info("i", onnx.TensorProto.INT64, []),
        ],
        [onnx.helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, [2])],
    )
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    model = tmp_path / "model.onnx"
    onnx.save(made, model)
    assert skip(model).reason == "an input is no tensor of known type and rank"
    items = [np.ones(2, np.float32), np.zeros(2, np.float32)]
    give(tmp_path / "test_data_set_0", "input", items, np.array(1))
    [case] = cases(model)
    assert case.inputs[0] == ("s", Sequence((Tensor.of(items[0]), Tensor.of(items[1]))))


def test_an_old_model_that_lists_its_weights_as_inputs_is_given_the_others(tmp_path: Path) -> None:
    made = onnx.parser.parse_model(f"{HEAD} g (float[3] w, float[3] x) => (float[3] z) {{ z = Add(w, x) }}")
    made.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(3, np.float32), "w"))
    onnx.save(made, tmp_path / "model.onnx")
    [drawn] = cases(tmp_path)
    give(tmp_path / "test_data_set_0", "input", np.zeros(3, np.float32))
    [given] = cases(tmp_path)
    assert [name for name, _ in drawn.inputs] == [name for name, _ in given.inputs] == ["x"]


@pytest.mark.parametrize(
    ("inputs", "outputs", "reason"),
    [
        ((), (), "the data set beside the model is empty"),
        ((), (np.zeros(3, np.float32),), "a file of the data set beside the model is missing"),
        ((np.zeros(7, np.float32),), (), "not of the type or shape"),
        ((np.zeros(3, np.float64),), (), "not of the type or shape"),
        ((np.zeros(3, np.float32),) * 2, (), "there is more data beside the model"),
        ((b"\xff\xfe no data",), (), "the data beside the model cannot be read"),
    ],
)
def test_data_that_do_not_fit_are_told(
    tmp_path: Path, inputs: tuple[object, ...], outputs: tuple[object, ...], reason: str
) -> None:
    model = write(tmp_path / "model.onnx", NEG)
    give(tmp_path / "test_data_set_0", "input", *inputs)
    give(tmp_path / "test_data_set_0", "output", *outputs)
    assert reason in skip(model).reason


def test_data_with_a_gap_are_told(tmp_path: Path) -> None:
    model = write(tmp_path / "model.onnx", ADD)
    give(tmp_path / "test_data_set_0", "input", np.zeros((2, 3), np.float32), np.zeros(3, np.float32))
    (tmp_path / "test_data_set_0" / "input_0.pb").unlink()
    assert skip(model).detail == "test_data_set_0/input_0.pb"


def test_what_cannot_be_a_case_says_why(tmp_path: Path) -> None:
    good = write(tmp_path / "good.onnx", ADD)
    half, empty = tmp_path / "half.onnx", tmp_path / "empty.onnx"
    half.write_bytes(good.read_bytes()[:-9])
    empty.write_bytes(b"")
    assert skip(half).reason == "the file is no ONNX model"
    assert skip(empty).reason == "the file is empty"
    assert skip(tmp_path / "none.onnx").reason == "the file cannot be read"
    unranked = onnx.parser.parse_model(NEG)
    unranked.graph.input[0].type.tensor_type.ClearField("shape")
    onnx.save(unranked, tmp_path / "unranked.onnx")
    assert skip(tmp_path / "unranked.onnx").reason == "the model is not valid ONNX"
    vast = write(tmp_path / "vast.onnx", NEG.replace("float[3]", "float[100000, 100000]"))
    assert skip(vast).reason == "an input or output has no form in a case"
    chosen = skip(write(tmp_path / "chosen.onnx", CHOSEN))
    assert chosen.reason == "an input decides the shape of an output, and its value is not known"


def test_operators_that_onnx_does_not_have_need_outputs_to_compare_with(tmp_path: Path) -> None:
    head = '<ir_version: 8, opset_import: ["" : 17, "com.acme" : 1]>'
    model = write(tmp_path / "own.onnx", f"{head} g (float[3] x) => (float[3] y) {{ y = com.acme.Magic(x) }}")
    assert skip(model).detail == "com.acme.Magic"
    give(tmp_path / "test_data_set_0", "input", np.zeros(3, np.float32))
    assert "no outputs lie beside" in skip(model).reason
    give(tmp_path / "test_data_set_0", "output", np.zeros(3, np.float32))
    assert len(cases(model)) == 1
    function = '<domain: "com.acme", opset_import: ["" : 17]> Magic (a) => (b) { b = Neg(a) }'
    known = write(
        tmp_path / "known" / "own.onnx",
        f"{head} g (float[3] x) => (float[3] y) {{ y = com.acme.Magic(x) }} {function}",
    )
    assert len(cases(known)) == 1


def test_a_dimension_that_an_exporter_left_open_as_minus_one_is_drawn(tmp_path: Path) -> None:
    made = onnx.parser.parse_model(ADD)
    made.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    onnx.save(made, tmp_path / "add.onnx")
    [case] = cases(tmp_path)
    assert [value.shape for _, value in case.values() if isinstance(value, Tensor)] == [(2, 3), (3,)]


def test_folders_are_looked_through_for_models_and_nothing_else(tmp_path: Path) -> None:
    for name in ("b/c d/ünï.onnx", "a.ONNX", ".hidden/x.onnx", "b/._a.onnx"):
        write(tmp_path / name, ADD)
    (tmp_path / "folder.onnx").mkdir()
    (tmp_path / "notes.txt").write_text("none")
    (tmp_path / "again").symlink_to(tmp_path)
    (tmp_path / "b" / "link.onnx").symlink_to("../a.ONNX")
    (tmp_path / "b" / "nowhere.onnx").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe.onnx")  # to open it would wait for a writer
    found = list(migrate([tmp_path]))
    assert [item.provenance.test if isinstance(item, TestCase) else item for item in found] == [
        "a.ONNX",
        "b/c d/ünï.onnx",
        "b/link.onnx",
        Skip("b/nowhere.onnx", "the file cannot be read", "nowhere.onnx: No such file or directory"),
        Skip("pipe.onnx", "the file cannot be read", "pipe.onnx is no regular file"),
    ]


def test_a_name_that_is_no_unicode_is_told_as_far_as_it_goes(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/a\xff.onnx"))
    [case] = cases(write(path, ADD))
    assert case.provenance.test == "a\\udcff.onnx"


def test_a_folder_that_cannot_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "open" / "add.onnx", ADD)
    shut = tmp_path / "shut"
    shut.mkdir()
    scandir = os.scandir

    def refusing(path: str) -> object:  # root, whom tests may run as, is refused nothing
        if str(path) == str(shut):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    reported = [item for item in migrate([tmp_path]) if isinstance(item, Skip)]
    assert reported == [Skip("shut", "the folder cannot be read", "Permission denied")]


def test_the_program_prints_what_became_of_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "models" / "add.onnx", ADD)
    (tmp_path / "models" / "bad.onnx").write_bytes(b"no model")
    assert main(["--corpus", str(tmp_path / "corpus"), str(tmp_path / "models")]) == 0
    reported = capsys.readouterr().out
    assert '"event": "skip", "test": "bad.onnx"' in reported
    assert '"cases": 1, "new": 1' in reported
    assert len(list(Corpus(tmp_path / "corpus").ids())) == 1
