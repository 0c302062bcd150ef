from __future__ import annotations

from tests.support.nodes import floats, longs, shapes
from tests.support.operators import check, check_torch


def test_blocks_become_images() -> None:
    ran = check("Col2Im", (18, 21), seeds=40)
    assert all(item.outputs is not None for item in ran)
    check("Col2Im", (18,), ("float16", "int8", "uint64", "bfloat16"), seeds=3, runs=False)
    nodes = [item.generated.graph.nodes[0] for item in ran]
    for name in ("strides", "dilations", "pads"):
        assert {name in node.attributes for node in nodes} == {True, False}
    assert {item.outputs[0].ndim for item in ran if item.outputs} == {4, 5}
    assert check_torch("Col2Im", 18, seeds=40) == 40


def test_images_of_blocks() -> None:
    assert shapes("Col2Im", [floats(2, 12, 20), longs(5, 7), longs(2, 3)]) == [(2, 2, 5, 7)]
    assert shapes("Col2Im", [floats(2, 12, 20), longs(5, 7), floats(2)]) == [(2, None, 5, 7)]


def test_regions_are_aligned() -> None:
    ran = check("RoiAlign", (13, 16, 21), seeds=20)
    assert all(item.outputs is not None for item in ran)
    check("RoiAlign", (16,), ("float64",), seeds=5)
    # onnxruntime 1.31 has no RoiAlign and no MaxRoiPool of opset 22.
    check("RoiAlign", (22,), ("float32", "bfloat16", "float16"), seeds=3, runs=False)
    for item in ran:
        attributes = item.generated.graph.nodes[0].attributes
        assert attributes.get("mode") != "max" or attributes["sampling_ratio"] == 1
    assert any(item.generated.graph.nodes[0].attributes.get("mode") == "max" for item in ran)


def test_regions_are_pooled() -> None:
    ran = check("MaxRoiPool", (13, 21), seeds=20)
    assert all(item.outputs is not None for item in ran)
    check("MaxRoiPool", (22,), ("float32", "float64", "bfloat16"), seeds=3, runs=False)
    assert shapes("MaxRoiPool", [floats(2, 3, 8, 8), floats(4, 5)], {"pooled_shape": (2, 1)}) == [
        (4, 3, 2, 1)
    ]
