"""Scripts of pairs of ONNX models are judged by running them, on every compiler."""

from __future__ import annotations

import sys
from typing import Any

import onnx
import onnx.parser
import pytest

from bot.reports.campaign_view import ToolchainView
from bot.reports.reproducer_pair import render_pair
from bot.reports.reproducer_short import ending
from bot.runners.reproducer_run import BUG_SHOWN, NOT_RUN, try_script
from fuzzing.cases import EquivalentModels, OnnxModel, Provenance, Recipe, TestCase
from fuzzing.cases.equivalent_pair import OneSidedError
from fuzzing.equivalence.graphs.models import pair_of
from fuzzing.equivalence.graphs.tangle import Step
from fuzzing.outcomes import Evidence, Mismatch, Outcome, Phase, Verdict
from fuzzing.triage.program_text import format_program, program_code

GRAPH = """<ir_version: 10, opset_import: ["" : 20]>
g (float[2,3] a, float[2,3] b) => (float[2,3] s, float[2,3] y) {
    s = Neg(a)
    y = Add(s, b)
}"""
STEPS = [Step("add-commuted", "y"), Step("outline", "y")]
BACKENDS = [
    pytest.param("onnxruntime", marks=pytest.mark.compiler_onnxruntime),
    pytest.param("openvino", marks=pytest.mark.compiler_openvino),
    *(
        pytest.param(name, marks=[getattr(pytest.mark, f"compiler_{name}"), pytest.mark.slow])
        for name in ("tvm", "iree", "tinygrad")
    ),
]


def pair() -> TestCase:
    model = onnx.parser.parse_model(GRAPH)
    given = tuple((name, Recipe("uniform", "float32", (2, 3), -1.0, 1.0, 7)) for name in ("a", "b"))
    left = TestCase(OnnxModel(model.SerializeToString()), given, Provenance("here", "t", "o", "onnx", "1"))
    made = pair_of(left, STEPS)
    assert made is not None
    return made


def wrong(right: str) -> TestCase:
    """The pair with another right model."""
    case = pair()
    assert isinstance(case.program, EquivalentModels)
    other = OnnxModel(onnx.parser.parse_model(right).SerializeToString())
    return TestCase(
        EquivalentModels(case.program.left, other, "graph", case.program.subject),
        case.inputs,
        case.provenance,
    )


def differing(case: TestCase, backend: str) -> Outcome:
    mismatch = Mismatch("y", "value", "2 of 6 elements differ", rtol=1e-5, atol=1e-5)
    return Outcome(
        case.id, backend, "here", "CPU", Verdict.WRONG_RESULT, Phase.RUN, "output y: 2 of 6 elements differ",
        evidence=Evidence(mismatches=(mismatch,)),
    )  # fmt: skip


def ended(case: TestCase, outcome: Outcome) -> int:
    toolchain = ToolchainView("here", {outcome.backend: "1"}, (f"{outcome.backend}==1",))
    script = render_pair(case, outcome, toolchain, program_code(case.program))
    assert script
    return try_script(script, sys.executable, ending(outcome))


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_script_shows_a_difference_and_only_that(backend: str) -> None:
    subtracted = wrong(GRAPH.replace("Add(s, b)", "Sub(s, b)"))
    assert ended(pair(), differing(pair(), backend)) == NOT_RUN
    assert ended(subtracted, differing(subtracted, backend)) == BUG_SHOWN


@pytest.mark.compiler_onnxruntime
def test_the_script_shows_the_exception_of_one_side() -> None:
    refused = wrong(GRAPH.replace("y = Add(s, b)", "y = Unknown(s, b)"))
    message = "only the right program fails, in compile: InvalidGraph: No Op registered for Unknown"
    outcome = Outcome(
        refused.id, "onnxruntime", "here", "CPU", Verdict.CRASH, Phase.RUN, message,
        evidence=Evidence(error=f"fuzzing.{OneSidedError.__name__}", message=message),
    )  # fmt: skip
    assert ended(refused, outcome) == BUG_SHOWN
    assert ended(pair(), outcome) == NOT_RUN


def test_both_models_are_shown_with_their_functions() -> None:
    program = pair().program
    assert isinstance(program, EquivalentModels)
    assert "# Left:" in format_program(program)
    assert "outlined_Add" in format_program(program)
    space: dict[str, Any] = {"onnx": onnx}
    exec(program_code(program), space)
    right = space["right"]
    assert [function.name for function in right.functions] == ["outlined_Add_0"]
    onnx.checker.check_model(right, full_check=True)
