from __future__ import annotations

import sys
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest

from fuzzing.cases import Corpus, OnnxModel, Provenance, Tensor, TestCase
from fuzzing.execute import supervisor
from fuzzing.execute.evaluator import Evaluator
from fuzzing.execute.shard import Shard
from fuzzing.execute.shard_run import ShardRun
from fuzzing.execute.worker_process import WorkerProcess
from fuzzing.outcomes import Phase, Verdict

ROOT = Path(__file__).parents[3]
BACKEND = str(ROOT / "tests" / "fuzzing" / "reduce" / "faulty_backend.py")
#: The same compiler as a release that knows ONNX up to opset 12.
DATED = """
import sys

sys.path.append({root!r})
from fuzzing.backends.base import register
from tests.fuzzing.reduce.faulty_backend import Faulty


@register
class Dated(Faulty):
    name = "dated"
    packages = ("onnxruntime",)
    newest_opsets = {{{release!r}: 12}}
"""
pytestmark = pytest.mark.compiler_onnxruntime


def case(op: str, seed: int = 0) -> TestCase:
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> g (float[2,3] x) => (float[2,3] y) {{ y = {op}(x) }}'
    )
    x = np.random.Generator(np.random.PCG64(seed)).uniform(0.5, 1, (2, 3)).astype(np.float32)
    return TestCase(
        OnnxModel(model.SerializeToString()), (("x", Tensor.of(x)),), Provenance("tests", op, op, "", "")
    )


def shard(fault: str, workers: int = 1) -> Shard:
    return Shard("", (), BACKEND, "digest", sys.executable, options={"fault": fault}, workers=workers)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The backends of the workers that were started."""
    found: list[str] = []

    class Counted(WorkerProcess):
        def __init__(self, command: Any, *rest: Any) -> None:
            found.append(Path(command.backend).stem)
            super().__init__(command, *rest)

    monkeypatch.setattr(supervisor, "WorkerProcess", Counted)
    return found


def test_outcomes_come_in_the_order_of_the_cases_whatever_they_are() -> None:
    invalid = case("Abs")
    with Evaluator(shard("crash-elu", workers=2)) as evaluator:
        outcomes = evaluator.evaluate([case("Elu"), case("Relu"), case("Elu", 1), invalid, case("Sigmoid")])
    crash, good, other, _, _ = outcomes
    assert [outcome.verdict for outcome in outcomes] == [
        Verdict.CRASH, Verdict.PASS, Verdict.CRASH, Verdict.PASS, Verdict.PASS
    ]  # fmt: skip
    assert (crash.phase, crash.case) == (Phase.CONVERT, case("Elu").id)
    assert other.case == case("Elu", 1).id
    assert good.configuration == ""


def test_a_difference_is_appealed_as_in_a_shard() -> None:
    with Evaluator(shard("wrong-sigmoid")) as evaluator:
        [wrong, right] = evaluator.evaluate([case("Sigmoid"), case("Tanh")])
    assert (wrong.verdict, right.verdict) == (Verdict.WRONG_RESULT, Verdict.PASS)
    assert wrong.evidence.mismatches[0].compiled_error is not None  # the float64 referee was heard


def test_a_case_that_fails_in_its_library_is_invalid() -> None:
    broken = case("Abs")
    broken = TestCase(OnnxModel(broken.program.to_bytes()[:-1]), broken.inputs, broken.provenance)
    with Evaluator(shard("crash-elu")) as evaluator:
        [first, second] = evaluator.evaluate([broken, case("Elu")])
        assert evaluator.reference(broken) is None
    assert (first.verdict, second.verdict) == (Verdict.INVALID, Verdict.CRASH)


def test_workers_stay_from_one_batch_to_the_next(started: list[str]) -> None:
    with Evaluator(shard("crash-elu")) as evaluator:
        for seed in range(3):
            assert evaluator.evaluate([case("Tanh", seed)])[0].verdict is Verdict.PASS
    assert sorted(started) == ["faulty_backend", "onnx_reference"]


def test_the_library_tells_what_a_case_gives() -> None:
    with Evaluator(shard("crash-elu")) as evaluator:
        given = evaluator.reference(case("Relu"))
    assert given is not None
    [(name, value)] = given
    assert name == "y"
    assert isinstance(value, Tensor)
    assert value.array().min() >= 0.5


def test_two_benches_ask_the_library_once(started: list[str]) -> None:
    """An accusation is repeated in a fresh process of the compiler; what the library says is known."""
    wrong = case("Sigmoid")
    with (
        Evaluator(shard("wrong-sigmoid")) as evaluator,
        Evaluator(replace(shard("wrong-sigmoid"), fresh=True), evaluator) as fresh,
    ):
        [first], [again] = evaluator.evaluate([wrong]), fresh.evaluate([wrong])
        assert (first.verdict, again.evidence.mismatches) == (Verdict.WRONG_RESULT, first.evidence.mismatches)
        requested = started.count("onnx_reference")
        [other] = fresh.evaluate([case("Sigmoid", 1)])
        assert other.verdict is Verdict.WRONG_RESULT
    assert started.count("onnx_reference") == requested == 4, "once for each of the ways it is run"
    assert started.count("faulty_backend") == 3


@pytest.mark.parametrize("by_shard", [False, True])
def test_an_operator_that_is_newer_than_the_release_is_unsupported_in_evaluators_and_shards(
    by_shard: bool, tmp_path: Path
) -> None:
    """Sigmoid-13 and Elu-6 fail on a release that knows ONNX up to opset 12."""
    backend = tmp_path / "dated_backend.py"
    release = ".".join(metadata.version("onnxruntime").split(".")[:2])
    backend.write_text(DATED.format(root=str(ROOT), release=release))
    verdicts = []
    for fault, failing in (("wrong-sigmoid", case("Sigmoid")), ("crash-elu", case("Elu"))):
        told = replace(shard(fault), backend=str(backend))
        if by_shard:
            corpus = Corpus(tmp_path)
            corpus.add(failing)
            told = replace(told, corpus=str(tmp_path), cases=(failing.id,))
            verdicts += [outcome.verdict for _, outcome in ShardRun(told).outcomes()]
        else:
            with Evaluator(told) as evaluator:
                verdicts += [outcome.verdict for outcome in evaluator.evaluate([failing])]
    assert verdicts == [Verdict.UNSUPPORTED, Verdict.CRASH]
