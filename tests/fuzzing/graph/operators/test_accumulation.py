from __future__ import annotations

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from fuzzing.graph import TensorType, operators
from fuzzing.graph.onnx_writer import to_onnx
from fuzzing.graph.operator_spec import NodeContext
from fuzzing.graph.types import FLOATS
from fuzzing.rng import Rng
from tests.support.operators import check, check_torch, fill, single


def test_running_sums() -> None:
    ran = check("CumSum", (13, 14), ("float32", "float64", "int32", "int64"), seeds=10)
    axes = [constant for item in ran for constant in item.generated.graph.constants.values()]
    assert {axis.dtype for axis in axes} == {"int32", "int64"}
    assert {axis.array.shape for axis in axes} == {()}
    assert any(axis.array < 0 for axis in axes)
    check("CumSum", (14,), ("float16", "bfloat16", "uint32"), seeds=3, runs=False)
    assert check_torch("CumSum", 18, ("float32", "int32"), seeds=16) == 32


def test_running_products() -> None:
    # onnxruntime 1.31 has none; onnx's own reference implementation has.
    check("CumProd", (26,), (*FLOATS, "int32", "uint64"), seeds=6, runs=False)
    assert "CumProd" not in operators.specifications(25)


def test_running_products_are_what_the_reference_and_torch_make_of_them() -> None:
    torch = pytest.importorskip("torch")
    operator = operators.get_specification("CumProd", 26)
    assert callable(operator.torch)
    for seed in range(20):
        generated = single("CumProd", seed, 26)
        graph = generated.graph
        (node,) = graph.nodes
        primary = node.inputs[0]
        assert primary is not None
        array = fill(graph.types[primary], generated.ranges[primary], Rng(seed))
        feeds = {f"v{edge}": fill(graph.types[edge], generated.ranges[edge], Rng(0)) for edge in graph.inputs}
        expected = ReferenceEvaluator(to_onnx(graph)).run(None, {**feeds, f"v{primary}": array})
        assert isinstance(expected, list)
        text = operator.torch(NodeContext.from_node(operator, graph, node), ["x", "axis"])
        assert text is not None
        found = eval(text, {"torch": torch, "x": torch.tensor(array)}).numpy()
        np.testing.assert_allclose(found, expected[0], rtol=1e-5)
        low, high = generated.ranges[node.outputs[0]]
        assert low <= found.min() <= found.max() <= high


def test_running_products_of_integers_stay_within_their_type() -> None:
    within = operators.get_specification("CumProd", 26).within
    assert within(TensorType("int32", (3,))).high ** 3 < 2**31
    assert within(TensorType("int32", (3,))).high > 1000
