"""Planted miscompilations: each real one is seen, and nothing is seen where a compiler may do as it likes.

One shard for all: the fault is part of the model. References and referee are the real ones.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx.parser
import pytest

from fuzzing.cases import Corpus, EquivalentModels, OnnxModel, Provenance, Tensor, TestCase
from fuzzing.execute.evaluator import Evaluator
from fuzzing.execute.shard import Shard
from fuzzing.outcomes import Outcome, Verdict
from tests.fuzzing.oracles.miscompiling_backend import INNOCENT, REAL, plant

BACKEND = str(Path(__file__).parent / "miscompiling_backend.py")
pytestmark = pytest.mark.compiler_onnxruntime

#: Programs of every temper: exact, rounded, cancelling, reducing, discrete, of several types and outputs.
GRAPHS = {
    "add": "(float[8,6] x, float[8,6] w) => (float[8,6] y) { y = Add(x, w) }",
    "exp": "(float[8,6] x) => (float[8,6] y) { y = Exp(x) }",
    "softmax": "(float[8,6] x) => (float[8,6] y) { y = Softmax<axis = 0>(x) }",
    "matmul": "(float[8,6] x, float[6,8] m) => (float[8,8] y) { y = MatMul(x, m) }",
    "sum": "(float[8,6] x) => (float[1,6] y) { a = Constant<value_ints = [0]>() y = ReduceSum(x, a) }",
    "elu": "(float[8,6] x) => (float[8,6] y) { y = Elu<alpha = 3.5>(x) }",
    "gemm": "(float[8,6] x, float[6,8] m) => (float[8,8] y) { y = Gemm<alpha = 0.5>(x, m) }",
    "transpose": "(float[8,6] x) => (float[6,8] y) { y = Transpose<perm = [1, 0]>(x) }",
    "cancelling": "(float[8,6] x, float[8,6] w) => (float[8,6] y) { a = Add(x, w) y = Sub(a, w) }",
    "argmax": "(float[8,6] t) => (int64[8,1] y) { e = Exp(t) y = ArgMax<axis = 1>(e) }",
    "two": "(float[8,6] x) => (float[8,6] y, float[8,6] z) { y = Tanh(x) z = Neg(x) }",
    "double": "(float[8,6] x) => (double[8,6] y) { d = Cast<to = 11>(x) y = Sin(d) }",
    "less": "(float[8,6] x, float[8,6] w) => (bool[8,6] y) { y = Less(x, w) }",
}


def case(graph: str) -> TestCase:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {graph}')
    inputs = []
    for number, given in enumerate(model.graph.input):
        shape = tuple(dim.dim_value for dim in given.type.tensor_type.shape.dim)
        drawn = np.random.Generator(np.random.PCG64(number)).uniform(-40, 40, shape)
        if given.name == "t":
            drawn = np.round(drawn / 20)  # with ties
        inputs.append((given.name, Tensor.of(drawn.astype(np.float32))))
    return TestCase(
        OnnxModel(model.SerializeToString()), tuple(inputs), Provenance("tests", graph, "", "", "")
    )


@pytest.mark.parametrize(("faults", "side"), [(("type", "none"), "left"), (("none", "type"), "right")])
def test_the_side_of_a_pair_that_has_another_type_is_named(faults: tuple[str, str], side: str) -> None:
    """The library's type says which it is."""
    honest = case(GRAPHS["add"])
    left, right = (plant(honest.program, fault) for fault in faults)
    pair = EquivalentModels(left, right, "tests")
    with Evaluator(Shard("", (), BACKEND, "digest", sys.executable)) as evaluator:
        [outcome] = evaluator.evaluate([replace(honest, program=pair)])
    assert outcome.verdict is Verdict.WRONG_RESULT
    [mismatch] = outcome.evidence.mismatches
    assert (mismatch.kind, mismatch.judged) == ("type", side)
    assert outcome.summary.startswith(f"output y of the {side} program: float64 instead of float32")


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Outcome]]:
    """The outcome of each graph with each fault, by fault and graph."""
    folder = tmp_path_factory.mktemp("planted")
    corpus = Corpus(folder / "corpus")
    planted: dict[str, tuple[str, str]] = {}
    for fault in (*REAL, *INNOCENT):
        for name, graph in GRAPHS.items():
            honest = case(graph)
            spoiled = replace(honest, program=plant(honest.program, fault))
            if fault == "stale":  # so that what is stale is another's
                spoiled = replace(spoiled, inputs=tuple(_other(spoiled)))
            corpus.add(spoiled)
            planted[spoiled.id] = fault, name
    shard = Shard(str(corpus.root), tuple(planted), BACKEND, "digest", sys.executable)
    path = folder / "shard.json"
    path.write_text(json.dumps(shard.to_json()))
    command = [sys.executable, "-m", "fuzzing.execute", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    found: dict[str, dict[str, Outcome]] = defaultdict(dict)
    for event in map(json.loads, done.stdout.splitlines()):
        if event["event"] == "outcome":
            outcome = Outcome.from_json(event["outcome"])
            fault, name = planted[outcome.case]
            found[fault][name] = outcome
    return found


def _other(given: TestCase) -> Iterator[tuple[str, Tensor]]:
    for name, value in given.inputs:
        assert isinstance(value, Tensor)
        yield name, Tensor.of(value.array() + np.float32(1))


@pytest.mark.parametrize("fault", REAL)
def test_every_fault_that_changes_something_is_seen(
    fault: str, verdicts: dict[str, dict[str, Outcome]]
) -> None:
    seen = {name: outcome.verdict for name, outcome in verdicts[fault].items()}
    changed = {name for name, verdict in seen.items() if verdict is not Verdict.UNSUPPORTED}
    assert changed, "the fault shows nowhere: then nothing was tested"
    assert {name: seen[name] for name in changed} == dict.fromkeys(changed, Verdict.WRONG_RESULT)


@pytest.mark.parametrize("fault", INNOCENT)
def test_what_a_compiler_may_do_is_passed(fault: str, verdicts: dict[str, dict[str, Outcome]]) -> None:
    seen = {name: (outcome.verdict, outcome.summary) for name, outcome in verdicts[fault].items()}
    changed = {name: it for name, it in seen.items() if it[0] is not Verdict.UNSUPPORTED}
    assert changed
    assert {name: verdict for name, (verdict, _) in changed.items()} == dict.fromkeys(
        changed, Verdict.PASS
    ), seen


def test_faults_show_in_enough_programs(verdicts: dict[str, dict[str, Outcome]]) -> None:
    shown = {
        fault: sum(outcome.verdict is not Verdict.UNSUPPORTED for outcome in outcomes.values())
        for fault, outcomes in verdicts.items()
    }
    least = {
        "sign": 12,
        "shifted": 12,
        "axes": 10,
        "uninitialized": 12,
        "half": 8,
        "attribute": 4,
        "stale": 4,
    }
    assert {fault: shown[fault] >= count for fault, count in least.items()} == dict.fromkeys(least, True), (
        shown
    )
    assert shown["tie"] == 1, "the tie-breaker shows in ArgMax, behind a rounding"
    assert shown["none"] == len(GRAPHS)


def test_the_evidence_tells_compiled_from_library(verdicts: dict[str, dict[str, Outcome]]) -> None:
    [found] = verdicts["half"]["matmul"].evidence.mismatches
    assert found.compiled_error is not None
    assert found.library_error is not None
    assert found.compiled_error > 100 * found.library_error
    assert sum(found.ulps) == 64
