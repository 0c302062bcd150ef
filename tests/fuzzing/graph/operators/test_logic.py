from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.graph import TensorType, operators
from fuzzing.graph.intervals import Interval
from fuzzing.graph.operator_spec import GraphLimits, NodeContext
from fuzzing.graph.types import INTEGERS
from fuzzing.rng import Rng
from tests.support.operators import check, check_torch


@pytest.mark.parametrize("name", ["And", "Or", "Xor", "Not"])
def test_truth_values(name: str) -> None:
    check(name, (13, 18), ("bool",), seeds=8)
    check(name, (18,), ("bool",), seeds=12, limits=GraphLimits(min_rank=0, min_dim=0))
    assert check_torch(name, 18, ("bool",), seeds=6) == 6


@pytest.mark.parametrize("name", ["BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"])
def test_bits(name: str) -> None:
    check(
        name,
        (18,),
        [dtype for dtype in INTEGERS if dtype in operators.get_specification(name, 18).dtypes],
        seeds=4,
    )
    assert check_torch(name, 18, ("int8", "int32", "int64", "uint8"), seeds=4) == 16


def test_shifts() -> None:
    check("BitShift", (13,), ("uint8", "uint32", "uint64"), seeds=12)
    check("BitShift", (13,), ("uint16",), seeds=2, runs=False)
    assert check_torch("BitShift", 18, ("uint8",), seeds=12) == 12


_BYTES = st.integers(-128, 127)
_OPERATIONS = {
    "BitwiseAnd": lambda a, b: a & b,
    "BitwiseOr": lambda a, b: a | b,
    "BitwiseXor": lambda a, b: a ^ b,
}


@given(
    st.sampled_from(sorted(_OPERATIONS)),
    st.lists(_BYTES, min_size=2, max_size=2).map(sorted),
    _BYTES,
    st.data(),
)
def test_bounds_hold_whatever_bits_two_numbers_have(
    name: str, ends: list[int], other: int, data: st.DataObject
) -> None:
    low, high = ends
    number = data.draw(st.integers(low, high))
    operator = operators.get_specification(name, 18)
    context = NodeContext(operator, 18, GraphLimits(), Rng(0), 2)
    context.types[:] = [TensorType("int8", (1,))] * 2
    context.ranges[:] = [Interval(low, high), Interval(min(other, 5), max(other, 5))]
    context.unpack_primary()
    (bounds,) = operator.intervals(context, 1)
    assert bounds.low <= _OPERATIONS[name](number, other) <= bounds.high
    assert Interval(-128, 127).contains(bounds)
