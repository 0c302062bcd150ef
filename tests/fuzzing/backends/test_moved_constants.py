from __future__ import annotations

from typing import Any

import numpy as np
import onnx.parser
import onnx.reference
from onnx import numpy_helper

from fuzzing.backends.onnx_reference.float64_widening import widen
from fuzzing.backends.onnx_reference.moved_constants import move_constants


def model_of(text: str) -> bytes:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> g {text}')
    return bytes(model.SerializeToString())


def constants(model: bytes | None) -> dict[str, np.ndarray]:
    assert model is not None
    return {t.name: numpy_helper.to_array(t) for t in onnx.load_from_string(model).graph.initializer}


SUM = model_of("(int64[1] x) => (float[1] y) <float[1] a = {0.1}, int64[1] n = {3}> "
               "{ f = Cast<to = 1>(x) s = Mul(f, a) y = Sub(s, a) }")  # fmt: skip


def test_float_constants_move_by_a_rounding_and_others_stay() -> None:
    up, down = (constants(move_constants(SUM, sign, {})) for sign in (1, -1))
    exact = float(np.float32(0.1))
    assert up["a"].dtype == np.float64
    assert 0 < abs(up["a"][0] - exact) <= 2 * 2.0**-24 * exact
    assert np.isclose(up["a"][0] - exact, exact - down["a"][0], rtol=1e-6)
    assert up["n"].dtype == np.int64
    assert up["n"].tolist() == [3]


def _run(model: bytes) -> Any:
    outputs: Any = onnx.reference.ReferenceEvaluator(widen(onnx.load_from_string(model))).run(
        None, {"x": np.array([3])}
    )
    return outputs[0]


def test_a_program_of_integer_inputs_shows_how_sensitive_it_is() -> None:
    moved = [move_constants(SUM, sign, {}) or b"" for sign in (1, -1)]
    up, down = (np.asarray(_run(model)) for model in moved)
    assert up.dtype == np.float64
    assert up != down


def test_what_decides_places_and_sizes_does_not_move() -> None:
    resize = "(float[1,1,2,2] x) => (float[1,1,4,4] y) <float[4] s = {1, 1, 2, 2}> { y = Resize(x, , s) }"
    assert move_constants(model_of(resize), 1, {}) is None
    half = resize.replace("float[4] s", "float16[4] s")
    assert move_constants(model_of(half), 1, {}) is not None, (
        "compilers compute places in the type they are given"
    )
    assert move_constants(model_of("(float[1] x) => (float[1] y) { y = Abs(x) }"), 1, {}) is None
