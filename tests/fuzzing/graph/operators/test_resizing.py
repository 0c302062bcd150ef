from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from fuzzing.graph.operators.resizing import overshoot
from tests.support.nodes import floats, longs, placed, shapes
from tests.support.operators import check, check_torch


def test_resizing_is_valid_in_all_forms() -> None:
    ran = check("Resize", (13, 18, 21), seeds=120)
    assert all(item.outputs is not None for item in ran)
    check("Resize", (13, 19), ("int8", "uint8", "int32", "float16"), seeds=10)
    check("Resize", (21,), ("int64", "bool", "bfloat16", "float64"), seeds=4, runs=False)
    nodes = [item.generated.graph.nodes[0] for item in ran]
    assert _drawn(nodes, "mode") == {None, "nearest", "linear", "cubic"}
    assert _drawn(nodes, "nearest_mode") == {None, "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}
    assert _drawn(nodes, "coordinate_transformation_mode") == {
        None, "half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize",
        "half_pixel_symmetric",
    }  # fmt: skip
    assert _drawn(nodes, "keep_aspect_ratio_policy") == {None, "stretch", "not_larger", "not_smaller"}
    assert _drawn(nodes, "antialias") == _drawn(nodes, "exclude_outside") == {None, 0, 1}
    assert _drawn(nodes, "cubic_coeff_a") == {None, -0.75, -0.5, -0.6}
    assert {len(node.inputs) for node in nodes} == {3, 4}
    assert {node.inputs[1] is None for node in nodes} == {True, False}
    assert any(min(axes, default=0) < 0 for axes in _drawn(nodes, "axes") - {None})


def _drawn(nodes: list[Any], name: str) -> set[Any]:
    return {node.attributes.get(name) for node in nodes}


def test_new_lengths() -> None:
    scales = np.array([1, 1, 0.6, 2.5], np.float32)
    assert shapes("Resize", [floats(1, 2, 5, 5), None, scales]) == [(1, 2, 3, 12)]
    assert shapes("Resize", [floats(5, 3), None, None, longs(7, 2)]) == [(7, 2)]
    assert shapes("Resize", [floats(5, 3), None, None, longs(7)], {"axes": (-1,)}) == [(5, 7)]
    larger, smaller = {"keep_aspect_ratio_policy": "not_larger"}, {"keep_aspect_ratio_policy": "not_smaller"}
    assert shapes("Resize", [floats(4, 3), None, None, longs(8, 3)], larger) == [(4, 3)]
    assert shapes("Resize", [floats(4, 3), None, None, longs(8, 3)], smaller) == [(8, 6)]
    assert shapes("Resize", [floats(4, 3), None, None, floats(2)]) == [(None, None)]
    assert shapes("Resize", [floats(4, None), None, scales[2:]]) == [(2, None)]


def test_interpolation_in_torch() -> None:
    """It has about one form in ten: images, whole lengths, and few of the modes."""
    assert check_torch("Resize", 13, seeds=150) >= 10
    assert check_torch("Resize", 21, seeds=150) >= 5


_COEFFICIENTS = (-0.5, -0.6, -0.75)


def _weights(length: int, size: int, attributes: dict[str, Any]) -> np.ndarray[Any, Any]:
    """How much of each element is in each one of the resized axis: [elements, new elements].

    Each channel is an image with a one in another place.
    """
    node = onnx.helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], mode="cubic", **attributes)
    graph = onnx.helper.make_graph(
        [node],
        "graph",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, (1, length, 1, length))],
        [onnx.helper.make_empty_tensor_value_info("y")],
        [onnx.numpy_helper.from_array(longs(1, length, 1, size), "sizes")],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 19)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    (found,) = session.run(None, {"x": np.eye(length, dtype=np.float32).reshape(1, length, 1, length)})
    weights: np.ndarray[Any, Any] = found[0, :, 0, :]
    return weights


def _attributes() -> Iterator[dict[str, Any]]:
    modes = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric")
    filters: tuple[dict[str, int], ...] = ({}, {"exclude_outside": 1}, {"antialias": 1})
    for mode, coefficient, extra in product(modes, _COEFFICIENTS, filters):
        yield {"coordinate_transformation_mode": mode, "cubic_coeff_a": coefficient, **extra}


@pytest.mark.parametrize("length", [1, 2, 3, 5, 8])
def test_cubic_curves_reach_no_farther_than_said(length: int) -> None:
    """The sum of the weights' magnitudes bounds the result on elements of magnitude 1."""
    most = 0.0
    for attributes, size in product(_attributes(), (1, 2, 3, 4, 7, 12)):
        reached = float(np.abs(_weights(length, size, attributes)).sum(0).max())
        context = placed("Resize", [floats(1, 1, 1, length)], {"mode": "cubic", **attributes})
        assert reached <= overshoot(context) + 1e-6, (size, attributes, reached)
        most = max(most, reached)
    assert length == 1 or most > 1.1
