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
def test_what_a_transform_gives_moves_by_at_most_a_rounding_of_its_largest_number(how: str) -> None:
    model = model_of(f"{IMPULSE} {{ t = DFT(x, n) y = Identity(t) }}")
    moves = run(move_transforms(model, how) or b"") - run(model)
    assert np.all(np.sign(moves) == (1 if how in ("up", "reversed") else -1))
    sizes = np.abs(moves.ravel()) / 2.0**-22
    np.testing.assert_allclose(sorted(sizes), np.arange(1, 7) / 6, rtol=1e-6)
    assert (sizes[0] < sizes[-1]) == (how in ("up", "down"))


def test_outputs_and_other_models_stay_as_they_are() -> None:
    assert move_transforms(model_of("(float x) => (float y) { y = Abs(x) }"), "up") is None
    assert move_transforms(model_of("(float DFT) => (float y) { y = Abs(DFT) }"), "up") is None
    model = model_of(f"{IMPULSE} {{ y = DFT(x, n) z = Abs(y) }}")
    np.testing.assert_array_equal(run(move_transforms(model, "up") or b""), run(model))


LAST = "ArgMin<axis = 0, keepdims = 0, select_last_index = 1>"


@pytest.mark.parametrize(
    ("operator", "type_", "want", "got", "verdict"),
    [
        ("Sign", "float[3,2]", [[1, 0]] * 3, [[1, -1]] * 3, Verdict.PASS),
        ("Ceil", "float[3,2]", [[1, 0]] * 3, [[1, 1]] * 3, Verdict.PASS),
        ("Abs", "float[3,2]", [[1, 0]] * 3, [[1, 1]] * 3, Verdict.WRONG_RESULT),
        (LAST, "int64[2]", [2, 2], [0, 1], Verdict.PASS),
    ],
)
def test_signs_and_ties_of_what_cancels_in_a_transform_accuse_nobody(
    operator: str, type_: str, want: list[Any], got: list[Any], verdict: Verdict, tmp_path: Path
) -> None:
    text = IMPULSE.replace("float[3,2]", type_)
    model = model_of(f"{text} {{ t = DFT(x, n) y = {operator}(t) }}")
    dtype = np.int64 if "int" in type_ else np.float32
    case = TestCase(
        OnnxModel(model),
        (("x", Tensor.of(np.ones((1, 1), np.float32))),),
        Provenance("tests", "t", "Op", "onnx", "1"),
        expected=(("y", Tensor.of(np.array(want, dtype))),),
    )
    execution = Execution(
        ending="returned", phase=Phase.RUN, outputs=(("y", Tensor.of(np.array(got, dtype))),)
    )
    outcome = decide_outcome(case, execution, backends.get("openvino"), "digest", "CPU")
    runners = ReferenceRunners(tmp_path, sys.executable, Limits(), keep_workers=True)
    try:
        [found] = Rechecker(runners).recheck([RecheckRequest(case, True, execution.outputs, outcome)])
    finally:
        runners.close()
    assert found.verdict is verdict
