"""No failure counts of a model that ONNX forbids; of a legal one it does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fuzzing.cases import OnnxModel, Provenance, TestCase
from fuzzing.execute.model_check import without_illegal_model
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
