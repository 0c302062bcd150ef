"""Bounds after rounding, and that every specification of values keeps to them in graphs that run."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.graph import TensorType, intervals, operators
from fuzzing.graph.constants import make_scalar
from fuzzing.graph.intervals import FULL_RANGES, Interval
from fuzzing.graph.operator_spec import GraphLimits, NodeContext
from fuzzing.graph.rounding import (
    after_rounding,
    factor_per_element,
    per_element,
    root_per_element,
    share,
    widened,
)
from fuzzing.graph.types import FLOATS
from fuzzing.rng import Rng
from tests.support.bounds import anything, check_bounds

_NAMES = (
    "Abs", "Acos", "Acosh", "Add", "And", "ArgMax", "ArgMin", "Asin", "Asinh", "Atan", "Atanh", "BitShift",
    "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Cast", "Ceil", "Celu", "Clip", "Cos", "Cosh",
    "CumSum", "Div", "Dropout", "Elu", "Equal", "Erf", "Exp", "Floor", "Gelu", "Greater", "HardSigmoid",
    "HardSwish", "Hardmax", "Identity", "IsInf", "IsNaN", "LeakyRelu", "Less", "Log", "LogSoftmax",
    "LpNormalization", "Max", "Mean", "Min", "Mish", "Mod", "Mul", "Neg", "Not", "Or", "PRelu", "Pow",
    "Reciprocal", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
    "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare", "Relu", "Round", "Selu", "Shrink", "Sigmoid",
    "Sign", "Sin", "Sinh", "Softmax", "Softplus", "Softsign", "Sqrt", "Sub", "Sum", "Tan", "Tanh",
    "ThresholdedRelu", "TopK", "Where", "Xor",
)  # fmt: skip

_DTYPES = ("float32", "float16", "int32", "int8", "uint8")


@pytest.mark.parametrize("dtype", _DTYPES)
def test_every_edge_of_a_graph_keeps_its_bounds(dtype: str) -> None:
    assert check_bounds(_NAMES, dtype, models=120, nodes=8, label="usual") > 400


@pytest.mark.parametrize("dtype", _DTYPES)
def test_bounds_hold_for_all_values_that_are_allowed(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intervals, "draw_interval", anything)
    assert check_bounds(_NAMES, dtype, models=300, nodes=2, label="wide") > 300


@given(st.floats(-6e3, 6e3), st.floats(-6e3, 6e3), st.sampled_from(["float16", "float32"]))
def test_a_rounded_sum_lies_in_the_loosened_bounds(a: float, b: float, dtype: str) -> None:
    kind = np.dtype(dtype).type
    x, y = float(kind(a)), float(kind(b))
    found = widened(Interval(x + y, x + y), dtype, scale=max(abs(x), abs(y)))
    assert found.low <= float(kind(x) + kind(y)) <= found.high


@given(st.floats(-100, 100), st.floats(-60, 60))
def test_rounding_outwards_keeps_the_sign(low: float, high: float) -> None:
    found = after_rounding(Interval(min(low, high), max(low, high)), "float16")
    assert found.contains(Interval(min(low, high), max(low, high)))
    assert (found.low >= 0) == (min(low, high) >= 0)
    assert (found.high <= 0) == (max(low, high) <= 0)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["ReduceSum", "ReduceL2", "ReduceProd", "CumProd", "Sum", "Swish"])
@pytest.mark.parametrize("elements", [1, 5, 4096, 1 << 20])
def test_what_an_operator_takes_at_most_it_can_give(name: str, dtype: str, elements: int) -> None:
    operator = operators.get_specification(name, 26)
    type_ = TensorType(dtype, (elements,))
    context = NodeContext(operator, 26, GraphLimits(), Rng(0), 1)
    context.types[0], context.ranges[0] = type_, operator.within(type_)
    if name == "CumProd":
        context.degree = 2
        context.types.append(TensorType("int64", ()))
        context.constants.append(make_scalar("int64", 0))
    context.unpack_primary()
    (found,) = operator.intervals(context, 1)
    assert FULL_RANGES[dtype].contains(found)


def test_what_may_be_flushed_to_zero_has_zero_in_its_bounds() -> None:
    assert after_rounding(Interval(1e-40, 1.0), "float32").low == 0
    assert after_rounding(Interval(-1.0, -1e-7), "float16").high == 0


@given(
    st.sampled_from(sorted(set(FULL_RANGES) - {"bool"})), st.lists(st.integers(1, 40), max_size=4).map(tuple)
)
def test_what_each_element_may_be_leaves_room_for_all_of_them(dtype: str, shape: tuple[int, ...]) -> None:
    type_ = TensorType(dtype, shape)
    count, limit = type_.elements, FULL_RANGES[dtype].high
    assert per_element(type_).largest * count <= limit
    assert root_per_element(type_).largest ** 2 * count <= limit * 1.0001
    assert factor_per_element(type_).largest ** count <= limit
    assert share(2)(type_).largest * 2 <= limit
