from __future__ import annotations

import onnx.parser
import pytest

from fuzzing.graph import TensorType
from fuzzing.graph.constants import make_scalar
from fuzzing.graph.onnx_reader import from_onnx
from tests.support.boundary_values import use_boundary_values
from tests.support.nodes import floats, inferred
from tests.support.operators import check, check_torch

TRANSFORMS = ("DFT", "STFT")
WINDOWS = ("HannWindow", "HammingWindow", "BlackmanWindow")


@pytest.mark.parametrize("name", [*TRANSFORMS, *WINDOWS, "MelWeightMatrix"])
def test_nodes_are_what_onnx_and_onnxruntime_say(name: str) -> None:
    check(name, (18, 21), seeds=12)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_bounds_hold_at_the_borders(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_boundary_values(monkeypatch)
    check(name, (18, 21), ("float32", "float16"), 8)


@pytest.mark.parametrize("opset", [18, 21])
@pytest.mark.parametrize("name", [*TRANSFORMS, *WINDOWS])
def test_torch_computes_the_same(name: str, opset: int) -> None:
    assert check_torch(name, opset, seeds=12) == 12


def test_half_of_a_transform() -> None:
    length, axis = make_scalar("int64", 7), make_scalar("int64", -3)
    found = inferred("DFT", 21, (floats(2, 5, 3, 1), length, axis), {"onesided": 1})
    assert found == (TensorType("float32", (2, 4, 3, 2)),)


@pytest.mark.parametrize(("length", "want"), [(None, 10), (9, 9)])
def test_half_a_spectrum_goes_back_to_real_numbers(length: int | None, want: int) -> None:
    given = None if length is None else make_scalar("int64", length)
    inputs = (floats(1, 6, 3, 2), given, make_scalar("int64", 1))
    found = inferred("DFT", 21, inputs, {"inverse": 1, "onesided": 1})
    assert found == (TensorType("float32", (1, want, 3, 1)),)


def test_frames_of_no_stated_length_are_open() -> None:
    """ONNX's checker passes a STFT with neither window nor length; reducers make them."""
    text = (
        '<ir_version: 8, opset_import: ["" : 17]> g (float[1,8,1] x) => (float[1,f,b,2] y) '
        "<int64 step = {2}> { y = STFT (x, step) }"
    )
    graph = from_onnx(onnx.parser.parse_model(text))
    assert graph.types[graph.outputs[0]].shape == (1, None, None, 2)
