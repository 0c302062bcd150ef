from __future__ import annotations

from fuzzing.graph import TensorType, operators
from fuzzing.graph.types import FLOATS
from tests.support.operators import check, check_torch


def test_running_sums() -> None:
    ran = check("CumSum", (13, 14), ("float32", "float64", "int32", "int64"), seeds=10)
    axes = [constant for item in ran for constant in item.generated.graph.constants.values()]
    assert {axis.dtype for axis in axes} == {"int32", "int64"}
    assert {axis.array.shape for axis in axes} == {()}
    assert any(axis.array < 0 for axis in axes)
    check("CumSum", (14,), ("float16", "bfloat16", "uint32"), seeds=3, runs=False)
    assert check_torch("CumSum", 18, ("float32", "int32"), seeds=16) == 32


def test_running_products() -> None:
    # onnxruntime 1.31 has none.
    check("CumProd", (26,), (*FLOATS, "int32", "uint64"), seeds=6, runs=False)
    assert "CumProd" not in operators.at(25)


def test_running_products_of_integers_stay_within_their_type() -> None:
    within = operators.named("CumProd", 26).within
    assert within(TensorType("int32", (3,))).high ** 3 < 2**31
    assert within(TensorType("int32", (3,))).high > 1000
