"""No failure counts of a model that ONNX forbids; of a legal one it does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fuzzing.cases import OnnxModel, Provenance, Tensor, TestCase
from fuzzing.execute.model_check import without_illegal_model, without_newer_operators
from fuzzing.generate.case_builder import CaseOrigin, build_case
from fuzzing.generate.isra.settings import GeneratorSettings
from fuzzing.generate.isra.solver import Solver
from fuzzing.outcomes import Evidence, Outcome, Phase, Verdict
from tests.fuzzing.backends.backend_kit import floats, onnx_case

SPLIT = onnx_case(
    "(float[1] x) => (float[1] a, float[N] b)", "a, b = Split<num_outputs = 3>(x)", 18, x=floats(1)
)
LEGAL = onnx_case(
    "(float[4] x) => (float[2] a, float[2] b)", "a, b = Split<num_outputs = 2>(x)", 18, x=floats(4)
)


def failed(case: TestCase, verdict: Verdict = Verdict.CRASH) -> Outcome:
    seen = Evidence(error="RuntimeError", message="the split number is invalid")
    return Outcome(case.id, "openvino", "t", "CPU", verdict, Phase.CONVERT, "s", evidence=seen)


@pytest.mark.parametrize("verdict", [Verdict.CRASH, Verdict.WRONG_RESULT])
def test_a_model_outside_onnx_accuses_nobody(verdict: Verdict) -> None:
    found = without_illegal_model(SPLIT, True, failed(SPLIT, verdict))
    assert found.verdict is Verdict.INVALID
    assert "Split: operands" in found.summary


#: ONNX does not know the shape of the scores, so only a run shows that there is no target for each.
LOSS = (
    "s = Shape(x) r = Reshape(x, s) y = NegativeLogLikelihoodLoss(r, t)",
    13,
)


@pytest.mark.parametrize(("targets", "verdict"), [((3, 2), Verdict.INVALID), ((1, 2), Verdict.CRASH)])
def test_operands_are_judged_by_what_the_model_computes(targets: tuple[int, int], verdict: Verdict) -> None:
    shape = ",".join(map(str, targets))
    case = onnx_case(
        f"(float[1,5,2] x, int64[{shape}] t) => (float y)",
        *LOSS,
        x=floats(1, 5, 2),
        t=Tensor.of(np.zeros(targets, np.int64)),
    )
    assert without_illegal_model(case, True, failed(case)).verdict is verdict


def test_what_is_legal_shipped_reduced_passing_or_unreadable_stays_as_it_is() -> None:
    unreadable = TestCase(OnnxModel(b"nonsense"), (), Provenance("", "", "", "", ""))
    reduced = replace(SPLIT, provenance=SPLIT.provenance.reduced())
    for case, computed, verdict in (
        (reduced, True, Verdict.CRASH),
        (LEGAL, True, Verdict.CRASH),
        (SPLIT, False, Verdict.CRASH),
        (SPLIT, True, Verdict.PASS),
        (unreadable, True, Verdict.CRASH),
    ):
        outcome = failed(case, verdict)
        assert without_illegal_model(case, computed, outcome) is outcome


def test_generated_models_are_legal() -> None:
    solver = Solver(GeneratorSettings(nodes=(1, 8), opset=18))
    for seed in np.random.default_rng(0).integers(1 << 30, size=40):
        made = build_case(solver.generate(int(seed)), int(seed), CaseOrigin("isra", "1"), "")
        outcome = failed(made)
        assert without_illegal_model(made, True, outcome) is outcome


GELU = onnx_case("(float[4] x) => (float[4] y)", "y = Gelu(x)", 20, x=floats(4))
OLD = onnx_case("(float[4] x) => (float[4] y)", "y = Relu(x)", 22, x=floats(4))
BODY = onnx_case(
    "(bool c) => (float[1] y)",
    "y = If (c) <then_branch = a () => (float[1] p) {q = Constant <value_floats = [1.0]> () p = Gelu(q)}, "
    "else_branch = b () => (float[1] r) {r = Constant <value_floats = [1.0]> ()}>",
    20,
    c=Tensor.of(np.array(True)),
)


@pytest.mark.parametrize("verdict", [Verdict.CRASH, Verdict.WRONG_RESULT])
@pytest.mark.parametrize("case", [GELU, BODY])
def test_an_operator_newer_than_the_release_is_unsupported(case: TestCase, verdict: Verdict) -> None:
    outcome = failed(case, verdict)
    found = without_newer_operators(case, outcome, 19)
    assert found.verdict is Verdict.UNSUPPORTED
    assert "opset 19" in found.summary
    assert "Gelu-20" in found.summary
    assert found.evidence == outcome.evidence


def test_old_operators_of_a_new_opset_known_opsets_and_signals_are_judged() -> None:
    died = replace(failed(GELU), evidence=Evidence(signal="SIGSEGV"))
    for case, outcome, newest in (
        (OLD, failed(OLD), 19),
        (GELU, failed(GELU), 20),
        (GELU, failed(GELU), None),
        (GELU, died, 19),
        (GELU, failed(GELU, Verdict.HANG), 19),
        (GELU, failed(GELU, Verdict.PASS), 19),
    ):
        assert without_newer_operators(case, outcome, newest) is outcome
