from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.graph.operator_spec import GraphLimits
from tests.support.nodes import floats, inferred, longs
from tests.support.operators import check, check_torch


def test_slices_are_valid() -> None:
    ran = check("Slice", seeds=15)
    assert all(item.outputs is not None for item in ran)
    check("Slice", (18,), ("float16", "int64", "bool", "uint8"), seeds=3)
    check("Slice", (21,), ("float64", "bfloat16", "int16", "uint32"), seeds=2, runs=False)
    assert check_torch("Slice", 18, ("float32", "int64"), seeds=25) == 50


def test_slices_take_all_forms() -> None:
    ran = check("Slice", (18,), seeds=150)
    check("Slice", (18,), seeds=10, limits=GraphLimits(min_dim=0))
    nodes = [item.generated.graph.nodes[0] for item in ran]
    assert {len(node.inputs) for node in nodes} == {3, 4, 5}
    assert any(len(node.inputs) == 5 and node.inputs[3] is None for node in nodes)
    constants = [constant for item in ran for constant in item.generated.graph.constants.values()]
    assert {constant.dtype for constant in constants} == {"int32", "int64"}
    assert any((constant.array == np.iinfo(constant.array.dtype).max).any() for constant in constants)
    steps = [
        item.generated.graph.constants[edge].array.tolist()
        for item, node in zip(ran, nodes, strict=True)
        if len(node.inputs) == 5 and (edge := node.inputs[4]) is not None
    ]
    assert {-2, -1, 1, 2, 3} == {step for found in steps for step in found}


_BOUND = st.integers(-9, 9) | st.sampled_from([2**31 - 1, -(2**31), 2**63 - 1, -(2**63) + 1])


@given(st.integers(0, 6), _BOUND, _BOUND, st.sampled_from([1, 2, 3, -1, -2, -3]))
def test_slices_are_as_long_as_onnx_says(length: int, start: int, end: int, step: int) -> None:
    inputs = (floats(length, 2), longs(start), longs(end), longs(-2), longs(step))
    inferred("Slice", 21, inputs, known=True)
