from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.graph.operator_spec import GraphLimits
from tests.support.nodes import floats, longs, placed, shapes
from tests.support.operators import check, check_torch

_NAMES = ("Shape", "Size", "ConstantOfShape", "Range", "Constant")


@pytest.mark.parametrize("name", _NAMES)
def test_nodes_about_shapes_are_valid(name: str) -> None:
    ran = check(name, (13, 21), seeds=25)
    assert all(item.outputs is not None for item in ran)
    check(name, (18,), seeds=10, limits=GraphLimits(min_rank=0, min_dim=0))
    if name in ("Shape", "Size"):
        check(name, (18,), ("int64", "bool", "float16"), seeds=4)


@pytest.mark.parametrize("name", _NAMES)
def test_shapes_in_torch(name: str) -> None:
    assert check_torch(name, 18, seeds=20) == 20


def test_ranges_say_how_long_tensors_are() -> None:
    for item in check("Shape", (18,), seeds=20):
        assert item.outputs is not None
        (node,) = item.generated.graph.nodes
        bounds = item.generated.ranges[node.outputs[0]]
        assert (bounds.low, bounds.high) == (item.outputs[0].min(), item.outputs[0].max())


@given(st.integers(0, 4), st.integers(-6, 6), st.integers(-6, 6))
def test_a_part_of_a_shape_is_a_slice(rank: int, start: int, end: int) -> None:
    dims = tuple(range(2, rank + 2))
    found = shapes("Shape", [floats(*dims)], {"start": start, "end": end})
    assert found == [(len(dims[start:end]),)]


@given(st.integers(-5, 5), st.integers(-5, 5), st.sampled_from([1, 2, -1, -3]))
def test_a_range_is_as_long_as_pythons(start: int, limit: int, step: int) -> None:
    scalars = [np.array(value) for value in (start, limit, step)]
    assert shapes("Range", [*scalars]) == [(len(range(start, limit, step)),)]


def test_lengths_that_nobody_knows_beforehand() -> None:
    vector = floats(3)._replace(dtype="int64")
    assert shapes("ConstantOfShape", [vector]) == [(None, None, None)]
    assert shapes("ConstantOfShape", [longs()]) == [()]
    assert shapes("Range", [vector._replace(shape=())] * 3) == [(None,)]
    context = placed("Size", [floats(2, None)])
    assert context.operator.intervals(context, 1)[0].low == 0


def test_constants_say_their_type() -> None:
    types = [
        placed("Constant", [], {name: value}).operator.infer(placed("Constant", [], {name: value}))[0]
        for name, value in (("value_int", 3), ("value_floats", (1.0, 2.0)), ("value_strings", ("a", "b")))
    ]
    assert [str(type_) for type_ in types] == ["int64[]", "float32[2]", "string[2]"]


def test_every_attribute_that_holds_numbers_occurs() -> None:
    held = [next(iter(item.generated.graph.nodes[0].attributes)) for item in check("Constant", seeds=40)]
    assert set(held) == {"value", "value_float", "value_floats", "value_int", "value_ints"}
