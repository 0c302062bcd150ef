"""`python -m fuzzing.coverage`: events, exit codes, files that are no models, several processes."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from fuzzing.coverage import __main__, files, operators
from fuzzing.coverage.files import find_models
from tests.fuzzing.coverage.coverage_kit import first_model, random_model, second_model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Models at several depths, as a corpus of cases has them, and two files that are none."""
    for at in range(5):
        path = tmp_path / f"{at:02x}" / f"{at:04x}" / "model.onnx"
        path.parent.mkdir(parents=True)
        path.write_bytes(random_model(at, nodes=10 + at, closing=True).SerializeToString())
    (tmp_path / "00" / "0000" / "meta.json").write_text("{}")
    (tmp_path / "03" / "broken.onnx").write_bytes(b"\xff\xff")
    (tmp_path / "empty.onnx").write_bytes(b"")
    return tmp_path


def ran(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, list[dict[str, Any]], str]:
    code = __main__.main([str(one) for one in arguments])
    out, err = capsys.readouterr()
    return code, [json.loads(line) for line in out.splitlines()], err


@pytest.fixture(autouse=True)
def _no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine: its events would come between those that are looked at."""
    monkeypatch.setattr(__main__, "_PROGRESS_S", math.inf)


def test_models_are_found_sorted_at_any_depth(folder: Path) -> None:
    found = [str(path.relative_to(folder)) for path in find_models([folder / "04", folder])]
    assert found == [
        "04/0004/model.onnx",
        "00/0000/model.onnx",
        "01/0001/model.onnx",
        "02/0002/model.onnx",
        "03/0003/model.onnx",
        "03/broken.onnx",
        "04/0004/model.onnx",
        "empty.onnx",
    ]


def test_a_folder_is_measured_and_what_is_no_model_left_out(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, [broken, empty, end], err = ran(capsys, folder)
    assert code == 0
    assert broken["event"] == empty["event"] == "broken"
    assert broken["file"] == str(folder / "03" / "broken.onnx")
    assert "left out" in err
    assert broken["reason"] in err
    assert (end["event"], end["models"], end["broken"], end["operators"]) == ("end", 5, 2, "isra")
    assert end["nodes"] == sum(range(10, 15)) == sum(one["nodes"] for one in end["by_operator"].values())
    assert end["nodes_of"] == {str(nodes): 1 for nodes in range(10, 15)}
    assert " ".join(end["metrics"]) == "OTC IDC ODC SEC DEC SPC NOO NOT NOP NTR NSA OLC"
    assert end["closing"] > 5
    assert set(end["dtypes"]) == {"float"}
    assert set(end["ranks"]) == {"2"}


def test_pairs_are_those_of_the_metrics(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "six.txt").write_text("Relu\nAbs\nAdd\nConcat\nSplit\nFlatten\n")
    for name, model in (("a.onnx", first_model()), ("b.onnx", second_model())):
        (tmp_path / name).write_bytes(model.SerializeToString())
    code, [end], _ = ran(
        capsys, tmp_path / "a.onnx", tmp_path / "b.onnx", "--operators", tmp_path / "six.txt"
    )
    assert code == 0
    assert end["pairs"] == {
        "Add": {"Abs": 1, "Concat": 2},
        "Concat": {"Abs": 1},
        "Relu": {"Add": 2, "Split": 1},
        "Split": {"Add": 1, "Relu": 1},
    }
    assert end["by_operator"]["Split"]["allowed"] == [1, 2]
    assert end["metrics"]["SEC"]["paper"] == {"value": 7 / 36, "unit": "share"}
    assert end["metrics"]["NOP"]["released"] == {"value": 3.5, "unit": "count"}


def test_several_processes_tell_the_same(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_BATCH", 1)  # so that batches are waited for while others are dealt
    _, alone, _ = ran(capsys, folder)
    code, together, _ = ran(capsys, folder, "--jobs", "2")
    assert code == 0
    for events in (alone, together):
        del events[-1]["seconds"]
    assert together == alone


def test_the_same_files_in_batches_of_any_size(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isra = operators.get("isra")
    monkeypatch.setattr(files, "_BATCH", 3)
    read_batches = list(files.read_batches(find_models([folder]), isra, jobs=1))
    assert [batch.tally.models for batch in read_batches] == [3, 2, 0]
    merged = read_batches[0].tally
    for batch in read_batches[1:]:
        merged.merge(batch.tally)
    assert merged == files.read_tally(isra, find_models([folder])).tally


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing"], "missing is not there; name ONNX files"),
        ([".", "--operators", "izra"], "no operator set is called 'izra'"),
        ([".", "--jobs", "0"], "at least one process"),
    ],
)
def test_mistakes_of_the_caller_are_an_event_and_exit_code_2(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, [error], err = ran(capsys, *arguments)
    assert code == 2
    assert (error["event"], error["kind"]) == ("error", "usage")
    assert message in error["message"]
    assert message in err


def test_progress_is_told_while_it_works(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(__main__, "_PROGRESS_S", 0.0)
    _, events, err = ran(capsys, folder)
    [progress] = [one for one in events if one["event"] == "progress"]
    assert progress["note"] == "5 models of 60 nodes, 2 files left out"
    assert progress["note"] in err


def test_dtypes_and_ranks_that_are_not_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from onnx import TensorProto, helper

    odd = helper.make_tensor_value_info("x", TensorProto.BFLOAT16, None)
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Mystery", ["a"], ["b"])]
    nodes.append(helper.make_node("Relu", ["b"], ["c"]))
    model = helper.make_model(helper.make_graph(nodes, "g", [odd], []))
    (tmp_path / "odd.onnx").write_bytes(model.SerializeToString())
    _, [end], _ = ran(capsys, tmp_path / "odd.onnx")
    assert end["dtypes"] == {"bfloat16": 1, "unknown": 1}
    assert end["ranks"] == {"unknown": 2}
    assert end["outside"] == {"Mystery": 1}
