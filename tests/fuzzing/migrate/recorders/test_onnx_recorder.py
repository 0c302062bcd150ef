"""The recorder of ONNX: in a pytest run, in a script that dies, and over a file of ONNX's own tests."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import onnx
import pytest

from fuzzing.cases import OnnxModel, Recipe, TestCase
from fuzzing.migrate.recorders import recording
from fuzzing.migrate.sources import Skip

FILE = Path(__file__).with_name("recorded_onnx.py")
PYTEST = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q"]


@pytest.fixture(scope="module")
def recorded() -> recording.Recording:
    return recording.record("onnx", [*PYTEST, str(FILE)], FILE.parent)


def cases(recorded: recording.Recording, test: str = "") -> list[TestCase]:
    """The cases, or those of one test."""
    found = [item for item in recorded.items if isinstance(item, TestCase)]
    return [case for case in found if case.provenance.test.split("::")[-1].startswith(test)]


def parsed(case: TestCase) -> onnx.ModelProto:
    assert isinstance(case.program, OnnxModel)
    return onnx.load_model_from_string(case.program.model)


def operators(found: list[TestCase]) -> list[list[str]]:
    return [[node.op_type for node in parsed(case).graph.node] for case in found]


def test_the_run_went_well(recorded: recording.Recording) -> None:
    assert (recorded.exit_code, recorded.bugs, recorded.processes) == (0, [], 1)


@pytest.mark.parametrize(
    ("test", "wanted"),
    [
        ("test_model", [["MatMul"], ["Relu"], ["MatMul", "Relu"]]),
        ("test_the_same_node_again", []),
        ("test_subgraph", [["If"], ["Abs"], ["Neg"]]),
        ("test_random", [["RandomNormalLike"]]),
        ("test_what_has_no_form", []),
    ],
)
def test_nodes_and_small_models(test: str, wanted: list[list[str]], recorded: recording.Recording) -> None:
    assert operators(cases(recorded, test)) == wanted


def test_a_model_has_the_opset_it_was_made_with(recorded: recording.Recording) -> None:
    for case in cases(recorded, "test_model"):
        assert [item.version for item in parsed(case).opset_import] == [13]


def test_a_graph_without_model_has_the_latest_opset(recorded: recording.Recording) -> None:
    [case] = [case for case in cases(recorded) if case.provenance.operator == "Sqrt"]
    assert [item.version for item in parsed(case).opset_import] == [onnx.defs.onnx_opset_version()]
    assert case.inputs == (("x0", Recipe("uniform", "float32", (2, 3), 0.1, 2.0, 0)),)


def test_random_models_are_compared_by_shape(recorded: recording.Recording) -> None:
    assert {case.provenance.operator for case in cases(recorded) if case.comparison == "shapes"} == {
        "RandomNormalLike"
    }


def test_what_has_no_form_has_a_reason(recorded: recording.Recording) -> None:
    skips = [item for item in recorded.items if isinstance(item, Skip)]
    assert [item.reason for item in skips] == [
        "the rank of an input is not known",
        "the operator is not one of the standard's",
    ]
    assert all(item.test.endswith("recorded_onnx.py::test_what_has_no_form") for item in skips)


def test_provenance(recorded: recording.Recording) -> None:
    for case in cases(recorded):
        assert (case.provenance.library, case.provenance.version) == ("onnx", onnx.__version__)


def test_the_reference_runs_every_case(recorded: recording.Recording, tmp_path: Path) -> None:
    assert list(recording.replay(recorded, tmp_path)) == recorded.items


def test_a_script_that_dies_keeps_what_it_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_CRASH", "1")
    died = recording.record("onnx", [sys.executable, str(FILE)], FILE.parent)
    assert died.exit_code == -9
    assert operators(cases(died)) == [["MatMul"], ["Relu"], ["MatMul", "Relu"]]
    assert cases(died)[0].provenance.test.startswith("recorded_onnx.py:test_model:")


def test_a_file_of_onnxs_own_tests() -> None:
    """Its classes make and check their models as `export…` methods, which pytest is told to call."""
    spec = find_spec("onnx")
    assert spec is not None
    assert spec.origin is not None
    file = Path(spec.origin).parent / "backend" / "test" / "case" / "node" / "clip.py"
    options = ["-o", "python_files=*.py", "-o", "python_classes=Clip", "-o", "python_functions=export*"]
    recorded = recording.record("onnx", [*PYTEST, *options, str(file)])
    found = cases(recorded)
    assert {"Clip"} <= {case.provenance.operator for case in found}
    assert len(found) > 10
