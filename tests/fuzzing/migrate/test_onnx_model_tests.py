"""The sources of ONNX's simple and PyTorch model tests; those of its node tests have a file of their own."""

from __future__ import annotations

import sys

import onnx
import pytest

from fuzzing.cases import OnnxModel, TestCase
from fuzzing.execute.supervisor import Supervisor
from fuzzing.execute.worker_command import WorkerCommand
from fuzzing.migrate import onnx_pytorch_tests, onnx_simple_tests, sources

SOURCES = ("onnx-simple-tests", "onnx-pytorch-tests")


@pytest.fixture(scope="module")
def migrated() -> dict[str, list[TestCase]]:
    found = {}
    for name in SOURCES:
        items = list(sources.get(name).migrate())
        found[name] = [item for item in items if isinstance(item, TestCase)]
        assert len(found[name]) == len(items)  # none is skipped
    return found


def operators(cases: list[TestCase]) -> dict[str, str]:
    return {case.provenance.test: case.provenance.operator for case in cases}


def test_every_test_of_the_library_is_a_case(migrated: dict[str, list[TestCase]]) -> None:
    from onnx.backend.test.loader import load_model_tests

    files = {test.name for kind in onnx_pytorch_tests.KINDS for test in load_model_tests(kind=kind)}
    assert set(operators(migrated["onnx-pytorch-tests"])) == files
    assert len(files) == len(migrated["onnx-pytorch-tests"]) > 100  # 117 in ONNX 1.23.2
    stored = {test.name for test in load_model_tests(kind="simple")}  # what ONNX once wrote of them
    assert stored <= set(operators(migrated["onnx-simple-tests"]))


@pytest.mark.parametrize(
    ("source", "test", "operator"),
    [
        ("onnx-simple-tests", "test_shrink", "Shrink"),
        ("onnx-simple-tests", "test_gradient_of_add", ""),
        ("onnx-pytorch-tests", "test_Conv2d", "Conv"),
        ("onnx-pytorch-tests", "test_operator_mm", "Gemm"),  # beside a Constant
        ("onnx-pytorch-tests", "test_operator_basic", ""),
    ],
)
def test_the_operator_under_test(
    migrated: dict[str, list[TestCase]], source: str, test: str, operator: str
) -> None:
    assert operators(migrated[source])[test] == operator


def test_provenance(migrated: dict[str, list[TestCase]]) -> None:
    for name, cases in migrated.items():
        reported = {
            (case.provenance.source, case.provenance.library, case.provenance.version) for case in cases
        }
        assert reported == {(name, "onnx", onnx.__version__)}


def test_inputs_are_the_graphs(migrated: dict[str, list[TestCase]]) -> None:
    """Old models list their weights as inputs, with initializers, after those that the test gives."""
    for case in (case for cases in migrated.values() for case in cases):
        assert isinstance(case.program, OnnxModel)
        graph = onnx.load_model_from_string(case.program.model).graph
        names = [item.name for item in graph.input]
        given = [name for name, _ in case.inputs]
        assert names[: len(given)] == given
        assert set(names[len(given) :]) <= {item.name for item in graph.initializer}
        assert [name for name, _ in case.expected or ()] == [item.name for item in graph.output]


def test_two_runs_give_the_same_cases(migrated: dict[str, list[TestCase]]) -> None:
    for name, cases in migrated.items():
        again = [item for item in sources.get(name).migrate() if isinstance(item, TestCase)]
        assert [case.id for case in again] == [case.id for case in cases]


def test_the_reference_gives_what_the_tests_expect(migrated: dict[str, list[TestCase]]) -> None:
    """A sample of each source, run as any compiler runs them."""
    sample = [*migrated["onnx-simple-tests"][:4], *migrated["onnx-pytorch-tests"][-4:]]
    supervisor: Supervisor[str] = Supervisor(WorkerCommand(sys.executable, "onnx_reference"))
    ended = dict(supervisor.run((case.provenance.test, case) for case in sample))
    assert {name: run.ending for name, run in ended.items()} == {
        case.provenance.test: "returned" for case in sample
    }


def test_collecting_twice_gives_the_same_tests() -> None:
    names = [test.name for test in onnx_simple_tests.collect()]
    assert names == sorted(names)
    assert names == [test.name for test in onnx_simple_tests.collect()]
