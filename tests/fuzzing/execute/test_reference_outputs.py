"""References: computed once, kept by content."""

from __future__ import annotations

import errno
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest

from fuzzing.cases import OnnxModel, Provenance, Tensor, TensorArg, TestCase, TorchCall
from fuzzing.errors import InfrastructureError
from fuzzing.execute.limits import Limits
from fuzzing.execute.reference_outputs import ReferenceOutputs
from fuzzing.execute.reference_runner import ReferenceRunners
from fuzzing.execute.supervisor import Supervisor

X = Tensor.of(np.array([1, -2], np.float32))
ABS = "(float[2] x) => (float[2] z) { z = Abs(x) }"
BAD = "(float[2] x) => (float[3] z) { s = Constant<value_ints = [3]>() z = Reshape(x, s) }"
ABSENT = "(optional(tensor(float)) x) => (bool z) { z = OptionalHasElement(x) }"


def case(graph: str = ABS, **given: Any) -> TestCase:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {graph}')
    return TestCase(
        OnnxModel(model.SerializeToString()), (("x", X),), Provenance("tests", graph, "", "", ""), **given
    )


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The evaluators that were started from here on."""
    started: list[str] = []

    def counted(command: Any, **given: Any) -> Any:
        started.append(command.backend)
        return Supervisor(command, **given)

    monkeypatch.setattr("fuzzing.execute.reference_runner.Supervisor", counted)
    return started


def complete(folder: Path, *cases: TestCase) -> list[tuple[TestCase, str]]:
    return list(ReferenceOutputs(ReferenceRunners(folder, sys.executable, Limits())).complete(cases))


def test_a_second_time_nothing_is_computed(tmp_path: Path, evaluated: list[str]) -> None:
    first = complete(tmp_path, case(), case(BAD))
    assert evaluated == ["onnx_reference"], "one worker for all of them"
    assert complete(tmp_path, case(), case(BAD)) == first
    assert len(evaluated) == 1


def test_only_what_is_missing_is_computed(tmp_path: Path, evaluated: list[str]) -> None:
    complete(tmp_path, case())
    other = "(float[2] x) => (float[2] z) { z = Neg(x) }"
    [(one, _), (two, _)] = complete(tmp_path, case(), case(other))
    assert one.expected == (("z", Tensor.of(np.array([1, 2], np.float32))),)
    assert two.expected == (("z", Tensor.of(np.array([-1, 2], np.float32))),)
    assert len(evaluated) == 2


def test_without_the_evaluator_what_is_known_still_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = complete(tmp_path, case())
    monkeypatch.setattr("fuzzing.execute.reference_runner.Supervisor", None)
    assert complete(tmp_path, case()) == first


def test_shipped_outputs_are_never_replaced(tmp_path: Path, evaluated: list[str]) -> None:
    shipped = case(expected=(("z", X),))
    assert complete(tmp_path, shipped) == [(shipped, "")]
    assert evaluated == []
    assert not (tmp_path / ".references").exists()


def test_what_fails_says_why_and_keeps_its_place(tmp_path: Path) -> None:
    bad, good = case(BAD), case()
    [(same, error), (completed, none)] = complete(tmp_path, bad, good)
    assert same is bad
    assert error.startswith("onnx_reference fails: ")
    assert len(error) <= 2000
    assert (completed.expected is not None, none) == (True, "")


def test_a_case_without_outputs_tests_nothing(tmp_path: Path) -> None:
    """`torch.unravel_index(x, ())` gives `()`; TVM refuses a program that computes nothing."""
    program = TorchCall("torch.unravel_index", (TensorArg("x"), ()))
    zero = TestCase(program, (("x", Tensor.of(np.array(0))),), Provenance("tests", "none", "", "", ""))
    for _ in range(2):  # as computed, and as stored
        assert complete(tmp_path, zero) == [(zero, "it has no outputs")]


def test_no_half_written_file_is_left(tmp_path: Path) -> None:
    complete(tmp_path, case())
    files = [name for _, _, names in os.walk(tmp_path) for name in names]
    assert files == [f"{case().id}.json"]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "{}", '{"outputs": 3}', '{"outputs": [3]}', '{"outputs": [["z", {}]]}']
)
def test_a_spoiled_record_is_computed_again(text: str, tmp_path: Path) -> None:
    """A full disk or a crash of the machine leaves such files; a case is not invalid for that."""
    [(first, _)] = complete(tmp_path, case())
    [path] = (tmp_path / ".references").rglob("*.json")
    path.write_text(text)
    assert complete(tmp_path, case()) == [(first, "")]
    assert json.loads(path.read_text())["outputs"]


def test_trouble_with_the_machine_is_not_kept(tmp_path: Path) -> None:
    """A time or memory limit says something about the machine and the limits; others may suffice."""
    slow = (
        "(float[2] x) => (float[2] z) { "
        "n = Constant<value_int = 100000000>() c = Constant<value_ints = [1]>() b = Cast<to = 9>(c) "
        "z = Loop(n, b, x) <body = body (int64 i, bool go, float[2] a) => (bool on, float[2] r) "
        "{ on = Identity(go) r = Add(a, a) }> }"
    )
    limits = Limits(run_s=0.2)
    [(_, error)] = ReferenceOutputs(ReferenceRunners(tmp_path, sys.executable, limits)).complete([case(slow)])
    assert "hung" in error
    assert not list((tmp_path / ".references").rglob("*.json"))


@pytest.mark.parametrize("hindrance", ["a folder that is no folder", "a disk that is full"])
def test_where_nothing_can_be_kept_beside_the_corpus_it_is_kept_for_the_run(
    hindrance: str, tmp_path: Path, evaluated: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A corpus may lie on a read-only disk, or on one that is full; that is no reason to run nothing."""
    if hindrance == "a folder that is no folder":  # root may write anywhere else
        (tmp_path / ".references").write_text("")
    else:
        filled(monkeypatch, tmp_path)
    references = ReferenceOutputs(ReferenceRunners(tmp_path, sys.executable, Limits()))
    first = list(references.complete([case(), case(BAD)]))
    assert first[0][0].expected is not None
    assert "onnx_reference fails" in first[1][1]
    assert list(references.complete([case(), case(BAD)])) == first
    assert evaluated == ["onnx_reference"], "what was computed is known for as long as the run lasts"
    assert not list(tmp_path.rglob("*.json"))
    assert not [path for path in tmp_path.rglob("*") if path.suffix == f".{os.getpid()}"], "no half a record"


def filled(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Makes the disk of `folder` full for text: half of it is written, then there is no more room."""
    write = Path.write_text

    def write_text(path: Path, text: str, *given: Any, **named: Any) -> int:
        if folder not in path.parents:
            return write(path, text, *given, **named)
        write(path, text[: len(text) // 2], *given, **named)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(Path, "write_text", write_text)


def test_where_nothing_can_be_kept_at_all_the_machine_is_to_blame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(monkeypatch, Path("/"))
    with pytest.raises(InfrastructureError, match=r"No space left on device.*TMPDIR"):
        complete(tmp_path, case())


def test_a_record_that_cannot_be_read_is_computed_again(tmp_path: Path) -> None:
    [(first, _)] = complete(tmp_path, case())
    [path] = tmp_path.rglob("*.json")
    path.unlink()
    path.mkdir()
    assert complete(tmp_path, case()) == [(first, "")]
