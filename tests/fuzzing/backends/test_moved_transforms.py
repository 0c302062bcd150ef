"""Fourier transforms in the runs that measure how sensitive a program is to rounding."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx.checker
import onnx.parser
import onnx.reference
import pytest

from fuzzing import backends
from fuzzing.backends.onnx_reference.float64_widening import widen
from fuzzing.backends.onnx_reference.moved_transforms import move_transforms
from fuzzing.backends.onnx_reference.moved_windows import MOVES
from fuzzing.cases import OnnxModel, Provenance, Tensor, TestCase
from fuzzing.execute.limits import Limits
from fuzzing.execute.recheck import Rechecker, RecheckRequest
from fuzzing.execute.reference_runner import ReferenceRunners
from fuzzing.execution import Execution
from fuzzing.oracles import decide_outcome
from fuzzing.outcomes import Phase, Verdict

#: The transform of an impulse, whose imaginary parts are 0.
IMPULSE = "(float[1,1] x) => (float[3,2] y) <int64 n = {3}> "


def model_of(text: str) -> bytes:
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 20]> g {text}')
    return bytes(model.SerializeToString())


def run(model: bytes) -> Any:
    """The first output of a float64 run for an impulse of 4."""
    onnx.checker.check_model(onnx.load_from_string(model))
    wide = widen(onnx.load_from_string(model))
    found: Any = onnx.reference.ReferenceEvaluator(wide).run(None, {"x": np.full((1, 1), 4.0)})
    return np.asarray(found[0])


@pytest.mark.parametrize("how", MOVES)
def test_what_a_transform_gives_moves_by_a_rounding_of_its_largest_number(how: str) -> None:
    model = model_of(f"{IMPULSE} {{ t = DFT(x, n) y = Identity(t) }}")
    moves = run(move_transforms(model, how) or b"") - run(model)
    assert np.all((np.abs(moves) <= 4 * 2.0**-24) & (np.abs(moves) >= 2 * 2.0**-24))
    assert np.all(moves > 0) == (how in ("up", "reversed"))


def test_outputs_and_other_models_stay_as_they_are() -> None:
    assert move_transforms(model_of("(float x) => (float y) { y = Abs(x) }"), "up") is None
    assert move_transforms(model_of("(float DFT) => (float y) { y = Abs(DFT) }"), "up") is None
    model = model_of(f"{IMPULSE} {{ y = DFT(x, n) z = Abs(y) }}")
    np.testing.assert_array_equal(run(move_transforms(model, "up") or b""), run(model))


@pytest.mark.parametrize(
    ("operator", "got", "verdict"),
    [("Sign", -1, Verdict.PASS), ("Ceil", 1, Verdict.PASS), ("Abs", 1, Verdict.WRONG_RESULT)],
)
def test_the_sign_of_what_cancels_in_a_transform_accuses_nobody(
    operator: str, got: float, verdict: Verdict, tmp_path: Path
) -> None:
    model = model_of(f"{IMPULSE} {{ t = DFT(x, n) y = {operator}(t) }}")
    want = np.array([[1, 0]] * 3, np.float32)
    claimed = np.array([[1, got]] * 3, np.float32)
    case = TestCase(
        OnnxModel(model),
        (("x", Tensor.of(np.ones((1, 1), np.float32))),),
        Provenance("tests", "t", "Op", "onnx", "1"),
        expected=(("y", Tensor.of(want)),),
    )
    execution = Execution(ending="returned", phase=Phase.RUN, outputs=(("y", Tensor.of(claimed)),))
    outcome = decide_outcome(case, execution, backends.get("openvino"), "digest", "CPU")
    runners = ReferenceRunners(tmp_path, sys.executable, Limits(), keep_workers=True)
    try:
        [found] = Rechecker(runners).recheck([RecheckRequest(case, True, execution.outputs, outcome)])
    finally:
        runners.close()
    assert found.verdict is verdict
