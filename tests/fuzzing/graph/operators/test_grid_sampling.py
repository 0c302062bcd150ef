from __future__ import annotations

from tests.support.nodes import floats, longs, shapes
from tests.support.operators import check, check_torch


def test_images_are_sampled() -> None:
    ran = check("GridSample", (16, 20), seeds=40)
    assert all(item.outputs is not None for item in ran)
    check("GridSample", (22,), ("float16", "float64", "bfloat16"), seeds=3, runs=False)
    modes = {item.generated.graph.nodes[0].attributes.get("mode") for item in ran}
    assert modes == {None, "bilinear", "bicubic", "linear", "cubic", "nearest"}
    ranks = {item.outputs[0].ndim for item in ran if item.outputs}
    assert ranks == {4, 5}
    assert check_torch("GridSample", 16, seeds=20) == 20
    assert check_torch("GridSample", 20, seeds=20) == 20


def test_grids_are_made() -> None:
    # Not float16, which onnxruntime has no kernel of: ONNX's expansion squeezes a batch of one away.
    ran = check("AffineGrid", (20, 21), ("float32", "float64"), seeds=20)
    assert all(item.outputs is not None for item in ran)
    assert check_torch("AffineGrid", 20, seeds=20) == 20


def test_shapes_of_samples() -> None:
    assert shapes("GridSample", [floats(2, 3, 4, 5), floats(2, 7, 1, 2)]) == [(2, 3, 7, 1)]
    assert shapes("GridSample", [floats(2, 3, 4, 5), floats(2, None, 1, 2)]) == [(2, 3, None, 1)]
    assert shapes("AffineGrid", [floats(2, 3, 4), longs(2, 1, 5, 6, 7)]) == [(2, 5, 6, 7, 3)]
    assert shapes("AffineGrid", [floats(2, 2, 3), floats(4)._replace(dtype="int64")]) == [(2, None, None, 2)]
