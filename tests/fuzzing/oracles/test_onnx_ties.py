"""Ties that the standard decides: errors, but where a rounding comes before them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx.parser
import pytest

from fuzzing import backends
from fuzzing.backends.base import Named
from fuzzing.cases import OnnxModel, Provenance, Tensor, TestCase
from fuzzing.execute.limits import Limits
from fuzzing.execute.recheck import Rechecker, RecheckRequest
from fuzzing.execute.reference_runner import ReferenceRunners
from fuzzing.execution import Execution
from fuzzing.oracles import decide_outcome
from fuzzing.outcomes import Outcome, Phase, Verdict

pytestmark = pytest.mark.compiler_onnx_reference


class Claim(NamedTuple):
    """A model, what it is given, and a first output that a compiler claims."""

    text: str
    x: object
    claimed: object
    computed_in: dict[str, str] = {}


WRONG = {
    "Floor of a whole number": Claim("(float[1] x) => (float[1] y) { y = Floor(x) }", [3], [2]),
    "Round of a half": Claim("(float[1] x) => (float[1] y) { a = Neg(x) y = Round(a) }", [2.5], [-3]),
    "a half, by steps of a power of two": Claim(
        "(float[1] x) => (uint8[1] y) <float s = {0.5}, uint8 z = {0}> { y = QuantizeLinear(x, s, z) }",
        [0.75],
        [1],
    ),
    "the first of equals": Claim("(float[3] x) => (int64[1] y) { y = ArgMax(x) }", [5, 1, 5], [2]),
    "the order of equals": Claim(
        "(float[3] x) => (int64[2] y) <int64[1] k = {2}> { v, y = TopK(x, k) }", [5, 1, 5], [2, 0]
    ),
    "a number cast": Claim("(float[1] x) => (int64[1] y) { y = Cast<to = 7>(x) }", [3], [2]),
    "a sample on the border": Claim(
        "(float[1,4] x) => (float[1,1,1,1] y) <float[1,1,1,1] d = {1}, int64[1] b = {0}> "
        "{ y = RoiAlign(d, x, b) }",
        [[1, 1, 3, 3]],
        [[[[0]]]],
    ),
    "float64 that is not narrowed": Claim("(double[1] x) => (double[1] y) { y = Floor(x) }", [3], [2]),
}
LEFT_TO_ROUNDING = {
    "Floor of a product": Claim(
        "(float[1] x) => (float[1] y) <float[1] c = {3}> { a = Mul(x, c) y = Floor(a) }", [1], [2]
    ),
    "a half, by steps that are rounded": Claim(
        "(float[1] x) => (uint8[1] y) <float s = {0.1}, uint8 z = {0}> { y = QuantizeLinear(x, s, z) }",
        [0.05],
        [1],
    ),
    "one that a sum reads too": Claim(
        "(float[2] x) => (float[2] y) { a = Floor(x) s = ReduceSum(x) y = Add(a, s) }", [3, 1], [6, 5]
    ),
    "one that a branch reads": Claim(
        "(float[1] x) => (float[1] y) <bool c = {1}> { y = If(c) "
        "<then_branch = t () => (float[1] p) { a = Mul(x, x) p = Floor(a) }, "
        "else_branch = e () => (float[1] q) { q = Identity(x) }> }",
        [3],
        [8],
    ),
    "one of three samples on the border": Claim(
        "(float[1,4] x) => (float[1,1,1,1] y) <float[1,1,1,1] d = {1}, int64[1] b = {0}> "
        "{ y = RoiAlign(d, x, b) }",
        [[1, 1, 4, 4]],
        [[[[0]]]],
    ),
    "an attribute that is rounded to the type": Claim(
        "(float[1] x) => (float[1] y) { y = ThresholdedRelu<alpha = 2.0>(x) }", [2], [2]
    ),
    "float64 that is computed in float32": Claim(
        "(double[1] x) => (double[1] y) { y = Floor(x) }", [4], [3], {"float64": "float32"}
    ),
}


def recheck_request_for(claim: Claim) -> RecheckRequest:
    module = backends.get("onnx_reference")()
    module.load("CPU", {})
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 22]> g {claim.text}')
    program = OnnxModel(model.SerializeToString())
    double = "double[" in claim.text
    values: Named = [("x", Tensor.of(np.asarray(claim.x, np.float64 if double else np.float32)))]
    expected = tuple(module.run(module.compile(module.convert(program, values)), values))
    case = TestCase(program, tuple(values), Provenance("tests", claim.text, "", "", ""), expected=expected)
    [(name, right), *_] = expected
    assert isinstance(right, Tensor)
    outputs = ((name, Tensor.of(np.asarray(claim.claimed, right.array().dtype))),)
    execution = Execution(ending="returned", phase=Phase.RUN, outputs=outputs)
    outcome = decide_outcome(case, execution, backends.get("onnxruntime"), "digest", "CPU")
    assert outcome.verdict is Verdict.WRONG_RESULT
    return RecheckRequest(case, True, outputs, outcome, claim.computed_in)


@pytest.fixture(scope="module")
def rechecked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """The verdict on each claim, all rechecked at once."""
    claims = {name: recheck_request_for(claim) for name, claim in (WRONG | LEFT_TO_ROUNDING).items()}
    corpus: Path = tmp_path_factory.mktemp("corpus")
    reference_runners = ReferenceRunners(corpus, sys.executable, Limits(), keep_workers=True)
    try:
        found = list(Rechecker(reference_runners).recheck(list(claims.values())))
    finally:
        reference_runners.close()
    return dict(zip(claims, found, strict=True))


@pytest.mark.parametrize("name", WRONG)
def test_a_tie_that_no_rounding_precedes_is_held_to(name: str, rechecked: dict[str, Outcome]) -> None:
    assert rechecked[name].verdict is Verdict.WRONG_RESULT


@pytest.mark.parametrize("name", LEFT_TO_ROUNDING)
def test_a_tie_behind_a_rounding_accuses_nobody(name: str, rechecked: dict[str, Outcome]) -> None:
    assert rechecked[name].verdict is Verdict.PASS, rechecked[name].summary
