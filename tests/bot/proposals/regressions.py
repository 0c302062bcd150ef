"""Bugs to write tests for: a case of each library, and how it failed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import onnx.parser

from bot.proposals.regression import Regression
from bot.reports.campaign_view import ToolchainView
from fuzzing.cases import Provenance, Tensor, TestCase
from fuzzing.cases.arguments import TensorArg
from fuzzing.cases.torch_call import TorchCall
from fuzzing.cases.torch_program import TorchProgram
from fuzzing.outcomes import Evidence, Mismatch, Outcome, Phase, Verdict
from fuzzing.triage.onnx_outline import onnx_outline
from fuzzing.triage.onnx_text import onnx_code
from tests.bot.reports.test_reproducer import case_of

ISSUE = "https://github.com/octo/compiler/issues/12"
X = np.array([[0.5, -2.0, 3.0], [4.0, 1.5, -6.0]], np.float32)


def cumsum() -> TestCase:
    """CumSum with two attributes that are not at their defaults."""
    program = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["": 18]>
        g (float[2,3] x) => (float[2,3] y) <int64 axis = {1}> {
            y = CumSum<exclusive: int = 1, reverse: int = 1>(x, axis)
        }"""
    )
    want = np.cumsum(X[:, ::-1], axis=1)[:, ::-1] - X
    return case_of(program.SerializeToString(), {"x": Tensor.of(X)}, {"y": Tensor.of(want)})


def node_test() -> TestCase:
    """CumSum as a node test of ONNX."""
    return replace(
        cumsum(), provenance=Provenance("onnx-node-tests", "test_cumsum_1d_exclusive", "CumSum", "onnx", "1")
    )


def torch_sum() -> TestCase:
    """torch.cumsum of a matrix."""
    call = TorchCall("torch.cumsum", (TensorArg("x"),), kwargs=(("dim", 1),))
    return TestCase(
        call, (("x", Tensor.of(X)),), Provenance("torch-api", "cumsum", "torch.cumsum", "torch", "2")
    )


def torch_text() -> TestCase:
    """A function of two tensors."""
    text = "import torch\n\n\ndef forward(x, y):\n    return torch.cumsum(x, 1) * y\n"
    inputs = (("0", Tensor.of(X)), ("1", Tensor.of(X)))
    return TestCase(TorchProgram(text), inputs, Provenance("torch-api", "f", "cumsum", "torch", "2"))


def regression(
    backend: str,
    case: TestCase,
    verdict: Verdict = Verdict.WRONG_RESULT,
    phase: Phase = Phase.RUN,
    **options: Any,
) -> Regression:
    """A bug of a backend."""
    output = "y" if case.program.frontend == "onnx" else "0"
    wrong = verdict is Verdict.WRONG_RESULT
    mismatch = Mismatch(output, "value", "differs", worst=(0, 0), got="1.5", want="1.0", rtol=1e-3, atol=1e-5)
    evidence = Evidence(mismatches=(mismatch,) if wrong else ())
    outcome = Outcome("0" * 64, backend, "t", "CPU", verdict, phase, "1 of 6 are wrong", {}, evidence)
    data = case.program.to_bytes()
    onnx = case.program.frontend == "onnx"
    toolchain = ToolchainView(f"{backend} 1.2.3", {backend: "1.2.3"}, (f"{backend}==1.2.3",))
    return Regression(
        case,
        outcome,
        toolchain,
        onnx_outline(data) if onnx else {},
        onnx_code(data) if onnx else "",
        options.get("issue", ISSUE),
    )
