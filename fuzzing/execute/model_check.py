"""Checks the model of a failing case: a compiler may refuse what ONNX forbids.

ONNX's evaluator, which computes the references, runs some models outside the standard. So the rules of
`fuzzing.graph.validity` must hold before a failure counts. Outputs that ship with a test show that the model
is meant; its case is not checked. Nor is a reduced case: the reducer lets it break only the rules that its
original breaks (`fuzzing.reduce.graph_validity`), as ONNX's own test_affine_grid_3d does.

A release also need not support operators that are newer than the ONNX that it was made for.
"""

from __future__ import annotations

import importlib
from dataclasses import replace

from fuzzing.cases import OnnxModel, TestCase
from fuzzing.oracles.decision import one_line
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
    if not broken:  # by what its nodes are given when it runs
        evaluator = importlib.import_module("fuzzing.backends.onnx_reference.edge_values")
        broken = sorted(validity.find_case_violations(case, evaluator.compute_edges(case)))
    if not broken:
        return outcome
    why = f"the model breaks rules of ONNX ({', '.join(broken)}), so the compiler may fail on it"
    return replace(
        outcome, verdict=Verdict.INVALID, summary=why, evidence=Evidence(message=outcome.evidence.message)
    )


def without_newer_operators(case: TestCase, outcome: Outcome, newest: int | None) -> Outcome:
    """The outcome; `unsupported` if it is an exception or a wrong result and the model uses operators newer
    than opset `newest`. Crashes of the process and hangs are failures whatever the model.

    newest  see `fuzzing.backends.base.Backend.newest_opset`; None if it is not known
    """
    raised = outcome.verdict is Verdict.CRASH and bool(outcome.evidence.error)
    if newest is None or not (raised or outcome.verdict is Verdict.WRONG_RESULT):
        return outcome
    if not isinstance(case.program, OnnxModel):
        return outcome
    versions = importlib.import_module("fuzzing.graph.operator_versions")
    newer: list[str] = versions.find_newer_operators(case.program.model, newest)
    if not newer:
        return outcome
    why = f"this release knows ONNX up to opset {newest}, the model has {', '.join(newer)}"
    return replace(outcome, verdict=Verdict.UNSUPPORTED, summary=one_line(why))
