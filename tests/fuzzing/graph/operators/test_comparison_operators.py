from __future__ import annotations

import pytest

from fuzzing.graph import operators
from fuzzing.graph.operator_spec import GraphLimits
from tests.support.operators import check, check_torch

_NAMES = ("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual")


@pytest.mark.parametrize("name", _NAMES)
def test_comparisons(name: str) -> None:
    check(name, (13, 16), ("float32", "float64", "int32", "uint8"), seeds=4)
    check(name, (13,), ("float16", "int8", "int64", "uint16", "uint64"), seeds=3)
    check(name, (16,), ("bfloat16",), seeds=2, runs=False)
    assert check_torch(name, 18, ("float32", "float16", "int8", "int64"), seeds=6) == 24


def test_comparisons_of_truth_values_scalars_and_nothing() -> None:
    check("Equal", (13,), ("bool",), seeds=6)
    check("Less", (13,), seeds=20, limits=GraphLimits(min_rank=0, min_dim=0))


def test_comparisons_give_truth_values_of_the_shape_of_both() -> None:
    for item in check("Less", (18,), seeds=40):
        graph = item.generated.graph
        assert graph.types[graph.outputs[0]].dtype == "bool"


def test_questions() -> None:
    check("IsNaN", (13, 20), ("float32", "float16", "float64"), seeds=3)
    check("IsInf", (13, 20), ("float32", "float64"), seeds=8)
    check("IsInf", (20,), ("float16",), seeds=3)
    assert check_torch("IsNaN", 18, seeds=4) == 4
    assert check_torch("IsInf", 20, seeds=12) == 12
    assert "float16" not in operators.get_specification("IsInf", 19).dtypes
