"""Of several rewrites of a failing pair the wrong one is named."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx.parser
import pytest

from fuzzing.cases import Corpus, OnnxModel, Provenance, Tensor, TestCase
from fuzzing.equivalence.graphs.models import pair_of
from fuzzing.equivalence.graphs.tangle import Step
from fuzzing.execute.shard import Shard
from fuzzing.execute.shard_run import ShardRun
from fuzzing.execute.wrong_rewrite import find_wrong_rewrite
from fuzzing.outcomes import Evidence, Mismatch, Outcome, Phase, Verdict

BACKEND = str(Path(__file__).parent / "wrong_operator_backend.py")
STEPS = [Step("multiply-one", "y"), Step("divide-reciprocal", "y_0"), Step("negate-twice", "y")]


def pair(left: str, steps: list[Step]) -> TestCase:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> g {left}')
    inputs = tuple((name, Tensor.of(np.array([2, 4, 5], np.float32))) for name in ("a", "b"))
    program = OnnxModel(model.SerializeToString())
    made = pair_of(TestCase(program, inputs, Provenance("tests", "t", "", "onnx", "")), steps)
    assert made is not None
    return made


DIVISION = "(float[3] a, float[3] b) => (float[3] y) { y = Div(a, b) }"
RECIPROCAL = "(float[3] a, float[3] b) => (float[3] y) { r = Reciprocal(b) y = Add(a, r) }"


@pytest.mark.compiler_onnxruntime
def test_a_failing_pair_is_told_with_its_wrong_rewrite(tmp_path: Path) -> None:
    """But not where the left side is the wrong one, which no rewrite has made so."""
    corpus = Corpus(tmp_path)
    cases = [pair(DIVISION, STEPS), pair(RECIPROCAL, [Step("reciprocal-divide", "r"), Step("identity", "y")])]
    for case in cases:
        corpus.add(case)
    ids = tuple(case.id for case in cases)
    shard = Shard(str(tmp_path), ids, BACKEND, "digest", sys.executable, ablate=True)
    found = {outcome.case: outcome for _, outcome in ShardRun(shard).outcomes()}
    outcomes = [found[case.id] for case in cases]
    assert [outcome.verdict for outcome in outcomes] == [Verdict.WRONG_RESULT] * 2
    assert [outcome.evidence.mismatches[0].judged for outcome in outcomes] == ["right", "left"]
    assert [outcome.evidence.rewrite for outcome in outcomes] == ["divide-reciprocal", ""]
    assert Outcome.from_json(outcomes[0].to_json()) == outcomes[0]


def outcome(verdict: Verdict, *judged: str) -> Outcome:
    mismatches = tuple(Mismatch("y", "value", "", judged=side) for side in judged)
    return Outcome("c", "b", "t", "CPU", verdict, Phase.RUN, "", evidence=Evidence(mismatches=mismatches))


@pytest.mark.parametrize(
    "failing",
    [
        outcome(Verdict.CRASH),
        outcome(Verdict.WRONG_RESULT, "left"),
        outcome(Verdict.WRONG_RESULT, "right", "left"),
    ],
)
def test_nothing_is_blamed_but_for_a_wrong_right_side(failing: Outcome) -> None:
    assert find_wrong_rewrite(pair(DIVISION, STEPS), failing, lambda _: pytest.fail("nothing to run")) == ""


def test_the_last_rewrite_is_blamed_if_all_others_pass() -> None:
    failing = outcome(Verdict.WRONG_RESULT, "right")
    ran: list[TestCase] = []

    def run(pairs: Sequence[TestCase]) -> list[Outcome]:
        ran.extend(pairs)
        return [outcome(Verdict.PASS) for _ in pairs]

    assert find_wrong_rewrite(pair(DIVISION, STEPS), failing, run) == "negate-twice"
    assert ran == [
        replace(pair(DIVISION, STEPS[:count]), provenance=one.provenance)
        for count, one in zip((1, 2), ran, strict=True)
    ]
    assert find_wrong_rewrite(pair(DIVISION, STEPS[:1]), failing, run) == "multiply-one"
