from __future__ import annotations

import pytest

from fuzzing.graph.onnx_writer import DTYPES
from tests.support.nodes import floats, longs, shapes
from tests.support.operators import check, check_torch

_NAMES = ("Trilu", "EyeLike", "ReverseSequence")


@pytest.mark.parametrize("name", _NAMES)
def test_nodes_that_mask_are_valid(name: str) -> None:
    ran = check(name, (14, 18, 22), seeds=20)
    assert all(item.outputs is not None for item in ran)
    check(name, (18,), ("int64", "float64"), seeds=4)
    check(name, (18,), ("bool", "uint8", "int16", "uint32"), seeds=3, runs=False)


@pytest.mark.parametrize("name", ["Trilu", "EyeLike", "ReverseSequence"])
def test_masks_in_torch(name: str) -> None:
    assert check_torch(name, 18, ("float32", "int64"), seeds=15) == 30


def test_one_hot_codes() -> None:
    ran = check("OneHot", (13, 21), ("float32", "int64", "int32"), seeds=20)
    assert all(item.outputs is not None for item in ran)
    check("OneHot", (18,), ("uint8", "float16"), seeds=4, runs=False)
    # Not float32: onnxruntime 1.31 does not cast indices to whole numbers, as the operator reference asks.
    assert check_torch("OneHot", 18, ("int64",), seeds=20) == 20


def test_where_the_classes_go() -> None:
    indices, off_on = floats(2, 3)._replace(dtype="int64"), longs(0, 1)
    assert shapes("OneHot", [indices, longs(5), off_on]) == [(2, 3, 5)]
    assert shapes("OneHot", [indices, longs(5), off_on], {"axis": -3}) == [(5, 2, 3)]
    assert shapes("OneHot", [indices, longs(5), off_on], {"axis": 1}) == [(2, 5, 3)]
    assert shapes("OneHot", [indices, indices._replace(shape=()), off_on]) == [(2, 3, None)]


def test_the_diagonals_type() -> None:
    ran = check("EyeLike", (18,), seeds=30)
    given = {item.generated.graph.nodes[0].attributes.get("dtype") for item in ran}
    assert given == {None, DTYPES["float32"], DTYPES["int64"]}


def test_sequences_lie_along_either_axis() -> None:
    nodes = [item.generated.graph.nodes[0] for item in check("ReverseSequence", (18,), seeds=30)]
    found = {(node.attributes.get("time_axis", 0), node.attributes.get("batch_axis", 1)) for node in nodes}
    assert found == {(0, 1), (1, 0)}
