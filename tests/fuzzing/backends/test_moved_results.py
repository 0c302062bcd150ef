"""Intermediate results and places in the runs that measure how sensitive a program is to rounding."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx.checker
import onnx.parser
import pytest

from fuzzing import backends
from fuzzing.backends.onnx_reference import OnnxReference
from fuzzing.backends.onnx_reference.moved_places import move_places
from fuzzing.backends.onnx_reference.moved_results import move_results
from fuzzing.backends.onnx_reference.moved_windows import MOVES
from fuzzing.cases import OnnxModel, Provenance, Tensor, TestCase, Value
from fuzzing.execute.limits import Limits
from fuzzing.execute.recheck import Rechecker, RecheckRequest
from fuzzing.execute.reference_runner import ReferenceRunners
from fuzzing.execution import Execution
from fuzzing.oracles import decide_outcome
from fuzzing.outcomes import Phase, Verdict


def model_of(text: str, opset: int = 20) -> bytes:
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]> g {text}')
    return bytes(model.SerializeToString())


def run(model: bytes | None, *inputs: Any) -> list[np.ndarray]:
    """The outputs of a float64 run."""
    assert model is not None
    reference = OnnxReference()
    reference.load("CPU", {"precision": "float64"})
    names = [item.name for item in onnx.load_from_string(model).graph.input]
    named: list[tuple[str, Value]] = [
        (name, Tensor.of(value)) for name, value in zip(names, inputs, strict=True)
    ]
    program = reference.compile(reference.convert(OnnxModel(model), named))
    return [value.array() for _, value in reference.run(program, named) if isinstance(value, Tensor)]


def judge(model: bytes, inputs: dict[str, Any], got: Any, folder: Path) -> Verdict:
    """The verdict on outputs in place of those of ONNX's evaluator."""
    named: tuple[tuple[str, Value], ...] = tuple((name, Tensor.of(value)) for name, value in inputs.items())
    reference = OnnxReference()
    reference.load("CPU", {})
    program = reference.compile(reference.convert(OnnxModel(model), list(named)))
    expected = tuple(reference.run(program, list(named)))
    case = TestCase(OnnxModel(model), named, Provenance("tests", "t", "Op", "onnx", "1"), expected=expected)
    [(name, want)] = expected
    assert isinstance(want, Tensor)
    outputs = ((name, Tensor.of(np.asarray(got, want.array().dtype).reshape(want.shape))),)
    execution = Execution(ending="returned", phase=Phase.RUN, outputs=outputs)
    outcome = decide_outcome(case, execution, backends.get("openvino"), "digest", "CPU")
    assert outcome.verdict is Verdict.WRONG_RESULT
    runners = ReferenceRunners(folder, sys.executable, Limits(), keep_workers=True)
    try:
        [found] = Rechecker(runners).recheck([RecheckRequest(case, True, outputs, outcome)])
    finally:
        runners.close()
    return found.verdict


@pytest.mark.parametrize("how", MOVES)
def test_what_an_operator_rounds_moves_by_up_to_two_roundings(how: str) -> None:
    model = model_of("(float[64] x) => (float[64] y) { t = Exp(x) y = Neg(t) }")
    x = np.linspace(-1, 1, 64, dtype=np.float32)
    moves = run(move_results(model, how, {}), x)[0] / run(model, x)[0] - 1
    sign = 1 if how in ("up", "reversed") else -1
    sizes = set(np.round(moves / (sign * 2.0**-23)).tolist())
    assert sizes == ({1.0} if how in ("up", "down") else {-1.0, 0.0, 1.0})


def test_bodies_move_what_they_give() -> None:
    body = "b (float[1] s, float[1] c) => (float[1] t, float[1] u) { t = Exp(s) u = Identity(c) }"
    model = model_of(
        "(float[1] x, float[2,1] v) => (float[1] y, float[2,1] z) "
        f"{{ y, z = Scan<num_scan_inputs = 1, body = {body}>(x, v) }}"
    )
    x, v = np.zeros(1, np.float32), np.ones((2, 1), np.float32)
    (y, z), (moved, same) = run(model, x, v), run(move_results(model, "up", {}), x, v)
    # exp(exp(0)) moves as its operand does, and by itself
    np.testing.assert_allclose(moved / y - 1, 2 * 2.0**-23, rtol=1e-3)
    np.testing.assert_array_equal(same, z)


def test_results_move_by_the_type_that_a_compiler_computes_in() -> None:
    model = model_of("(double[1] x) => (double[1] y) { t = Exp(x) y = Neg(t) }")
    [y], [far] = run(model, np.ones(1)), run(move_results(model, "up", {"float64": "float32"}), np.ones(1))
    np.testing.assert_allclose(far / y - 1, 2.0**-23, rtol=1e-3)


@pytest.mark.parametrize(
    "text",
    [
        "(float[2] x) => (float[2] y) { y = Exp(x) }",
        "(float[2] x) => (float[2] y) { t = Neg(x) y = Exp(t) }",
        "(int64[2] x) => (int64[2] y) { t = Mul(x, x) y = Neg(t) }",
    ],
)
def test_outputs_and_what_is_exact_stay(text: str) -> None:
    assert move_results(model_of(text), "up", {}) is None
    assert move_places(model_of(text), "up") is None


#: Halves of 3 and 5 are read from places of an image of 4 numbers, by a region as in ONNX's own tests.
CROP = (
    "(float[4] x) => (float[{count}] y) <float[2] r = {{{region}}}, int64[1] s = {{{count}}}> "
    '{{ y = Resize<coordinate_transformation_mode = "tf_crop_and_resize"{more}>(x, r, , s) }}'
)
IMAGE = np.array([1, 2, 3, 4], np.float32)


@pytest.mark.parametrize(
    ("text", "inputs", "got", "verdict"),
    [
        # The mean of three equal numbers is that number or its neighbor.
        (
            "(float[2] x) => (bool[2] y) { m = Mean(x, x, x) y = Less(x, m) }",
            {"x": np.array([0.1, 0.2], np.float32)},
            [True, False],
            Verdict.PASS,
        ),
        (
            "(float[2] x) => (bool[2] y) { m = Neg(x) y = Less(x, m) }",
            {"x": np.array([0.1, 0.2], np.float32)},
            [True, False],
            Verdict.WRONG_RESULT,
        ),
        # The last number of a window is 0, or 1 less its cosine.
        (
            "() => (bool[2] y) <int32 n = {2}> { w = HannWindow<periodic = 0>(n) y = Cast<to = 9>(w) }",
            {},
            [False, False],
            Verdict.PASS,
        ),
        # Four equal integers are interpolated: 4, or a bit less.
        (
            "(int64[4] x) => (int64[7] y) <int64[1] s = {7}> "
            '{ f = Cast<to = 1>(x) t = Resize<mode = "linear">(f, , , s) y = Cast<to = 7>(t) }',
            {"x": np.full(4, 4)},
            [4, 3, 4, 4, 4, 3, 4],
            Verdict.PASS,
        ),
        # -0.21 and a step eleven times are the last place, or beyond it.
        (CROP.format(region="-0.21, 1", count=12, more=""), {"x": IMAGE}, None, Verdict.PASS),
        (
            CROP.format(region="0.4, 0.6", count=3, more=', mode = "nearest"'),
            {"x": IMAGE},
            [2, 2, 3],
            Verdict.PASS,
        ),
        # Of a step of a power of two the standard decides.
        (CROP.format(region="0, 1", count=5, more=""), {"x": IMAGE}, None, Verdict.WRONG_RESULT),
    ],
)
def test_what_rounding_inside_decides_accuses_nobody(
    text: str, inputs: dict[str, Any], got: Any, verdict: Verdict, tmp_path: Path
) -> None:
    model = model_of(text)
    if got is None:  # as if the last place were beyond
        got = run(model, *inputs.values())[0].copy()
        got[-1] = 0
    assert judge(model, inputs, got, tmp_path) is verdict
