from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.graph.operator_spec import GraphLimits
from tests.support.nodes import floats, longs, shapes
from tests.support.operators import check, check_torch

_NAMES = ("Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze")
_EMPTY = GraphLimits(min_rank=0, min_dim=0)


@pytest.mark.parametrize("name", _NAMES)
def test_nodes_that_lay_out_are_valid(name: str) -> None:
    ran = check(name, seeds=12)
    assert all(item.outputs is not None for item in ran)
    check(name, (13, 26), ("float16", "int8", "uint8"), seeds=3)
    check(name, (21,), ("float64", "bfloat16", "uint16", "int32", "uint64", "bool"), seeds=2, runs=False)
    check(name, (18,), seeds=10, limits=_EMPTY)


@pytest.mark.parametrize("name", _NAMES)
def test_layout_in_torch(name: str) -> None:
    assert check_torch(name, 18, ("float32", "uint8"), seeds=10) == 20


def test_attributes_are_left_out_and_negative_sometimes() -> None:
    nodes = [item.generated.graph.nodes[0] for item in check("Transpose", (18,), seeds=60)]
    assert any("perm" not in node.attributes for node in nodes)
    nodes = [item.generated.graph.nodes[0] for item in check("Flatten", (18,), seeds=40)]
    axes = {node.attributes.get("axis") for node in nodes}
    assert {None, 0} < axes
    assert any(isinstance(axis, int) and axis < 0 for axis in axes)


def test_reshape_draws_what_frontends_confuse() -> None:
    ran = check("Reshape", (18,), seeds=60)
    entries = [next(iter(item.generated.graph.constants.values())).array.tolist() for item in ran]
    assert any(-1 in shape for shape in entries)
    assert any(0 in shape for shape in entries)
    assert any("allowzero" in item.generated.graph.nodes[0].attributes for item in ran)


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.data())
def test_reshape_keeps_the_number_of_elements(dims: list[int], data: st.DataObject) -> None:
    x = floats(*dims)
    cut = data.draw(st.integers(1, len(dims)))
    (shape,) = shapes("Reshape", [x, longs(*dims[:cut], -1)])
    assert shape == (*dims[:cut], x.elements // floats(*dims[:cut]).elements)


def test_reshape_reads_zero_in_two_ways() -> None:
    assert shapes("Reshape", [floats(2, 0, 3), longs(0, 0, 7)]) == [(2, 0, 7)]
    assert shapes("Reshape", [floats(2, 0, 3), longs(0, 4)], {"allowzero": 1}) == [(0, 4)]
    assert shapes("Reshape", [floats(2, None), longs(-1)]) == [(None,)]


def test_shapes_that_nobody_knows_beforehand() -> None:
    unknown = floats(3)._replace(dtype="int64")
    assert shapes("Reshape", [floats(2, 6), unknown]) == [(None, None, None)]
    assert shapes("Unsqueeze", [floats(2, 6), unknown]) == [(None,) * 5]
    assert shapes("Squeeze", [floats(1, 2, None)]) == [None]
    assert shapes("Flatten", [floats(2, None, 3)], {"axis": -1}) == [(None, 3)]


def test_negative_axes() -> None:
    assert shapes("Squeeze", [floats(1, 2, 1), longs(-1)]) == [(1, 2)]
    assert shapes("Squeeze", [floats(1, 2, 1)]) == [(2,)]
    assert shapes("Unsqueeze", [floats(2, 3), longs(-1, 0)]) == [(1, 2, 3, 1)]
    assert shapes("Flatten", [floats(2, 3, 4)], {"axis": -2}) == [(2, 12)]
