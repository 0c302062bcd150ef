"""Checks the model of a failing case: a compiler may refuse what ONNX forbids.

ONNX's evaluator, which computes the references, runs some models outside the standard. So the rules of
`fuzzing.graph.validity` must hold before a failure counts. Outputs that ship with a test show that the model
is meant; its case is not checked. Nor is a reduced case: the reducer lets it break only the rules that its
original breaks (`fuzzing.reduce.graph_validity`), as ONNX's own test_affine_grid_3d does.
"""

from __future__ import annotations

import importlib
from dataclasses import replace

from fuzzing.cases import OnnxModel, TestCase
from fuzzing.outcomes import Evidence, Outcome, Verdict


def without_illegal_model(case: TestCase, computed: bool, outcome: Outcome) -> Outcome:
    """The outcome; `invalid` if it is a failure and the model breaks a rule of ONNX.

    computed  whether the library computed the reference, rather than shipping it with its test
    """
    if not computed or case.provenance.is_reduced or not outcome.verdict.is_failure:
        return outcome
    if not isinstance(case.program, OnnxModel):
        return outcome
    # Found by name, as backends are: the control plane imports this module, and never onnx.
    validity = importlib.import_module("fuzzing.graph.case_validity")
    broken: list[str] = sorted(validity.find_case_violations(case))
    if not broken:
        return outcome
    why = f"the model breaks rules of ONNX ({', '.join(broken)}), so the compiler may fail on it"
    return replace(
        outcome, verdict=Verdict.INVALID, summary=why, evidence=Evidence(message=outcome.evidence.message)
    )
