from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.graph import TensorType, operators
from fuzzing.graph.intervals import Interval
from fuzzing.graph.operator_spec import GraphLimits
from fuzzing.graph.operators.elementwise import sines, single_minimum_range
from tests.support.operators import check, check_torch

_FLOATING = (
    "Reciprocal", "Floor", "Ceil", "Round", "Erf", "Exp", "Log", "Sqrt", "Sin", "Cos", "Tan", "Sinh", "Cosh",
    "Tanh", "Asin", "Acos", "Atan", "Asinh", "Acosh", "Atanh",
)  # fmt: skip


@pytest.mark.parametrize("name", _FLOATING)
def test_functions_of_floats(name: str) -> None:
    check(name, (13, 22), ("float32", "float16", "float64"), seeds=4)
    check(name, (22,), ("bfloat16",), seeds=2, runs=False)
    assert check_torch(name, 18, ("float32", "float16"), seeds=4) == 8


@pytest.mark.parametrize("name", ["Abs", "Neg", "Sign"])
def test_functions_of_numbers(name: str) -> None:
    check(name, (13, 18), ("float32", "float16", "int8", "int32", "int64"), seeds=4)
    assert check_torch(name, 18, ("float32", "int8", "int64"), seeds=4) == 12


@pytest.mark.parametrize("name", ["Abs", "Floor", "Sin"])
def test_scalars_and_empty_tensors(name: str) -> None:
    ran = check(name, (18,), seeds=30, limits=GraphLimits(min_rank=0, min_dim=0))
    shapes = [item.generated.graph.types[item.generated.graph.outputs[0]].lengths for item in ran]
    assert () in shapes
    assert any(0 in shape for shape in shapes)


def test_bfloat16_came_with_the_forms_of_opset_22() -> None:
    assert "bfloat16" not in operators.get_specification("Sin", 21).dtypes
    assert "bfloat16" in operators.get_specification("Sin", 22).dtypes


def test_the_least_integer_is_not_negated() -> None:
    assert operators.get_specification("Neg", 18).within(TensorType("int8", (2,))) == Interval(-127, 127)


_angles = st.floats(-1e3, 1e3)


@given(st.lists(_angles, min_size=2, max_size=2).map(sorted), st.floats(0, 1))
def test_sines_of_an_interval_hold_each_sine_and_are_tight(ends: list[float], share: float) -> None:
    low, high = ends
    found = sines(Interval(low, high))
    angle = min(high, low + (high - low) * share)
    assert found.low - 1e-9 <= math.sin(angle) <= found.high + 1e-9
    points = np.sin(np.linspace(low, high, 4001))
    coarse = (high - low) / 4000  # no sine lies further than half a step from a point's
    assert found.low >= points.min() - coarse
    assert found.high <= points.max() + coarse


@given(st.lists(st.floats(-50, 50), min_size=2, max_size=2).map(sorted), st.floats(-20, 20))
def test_a_valley_is_lowest_where_it_is_said_to_be(ends: list[float], at: float) -> None:
    low, high = ends
    found = single_minimum_range(lambda x: (x - at) ** 2, at, Interval(low, high))
    nearest = min(max(at, low), high)
    assert found == Interval((nearest - at) ** 2, max((low - at) ** 2, (high - at) ** 2))
