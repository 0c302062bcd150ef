"""Values of a graph's edges, from a library that may err."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import onnx.parser
import pytest

from fuzzing.cases import OnnxModel, Provenance, Tensor, TestCase, Value
from fuzzing.execute.evaluator import Evaluator
from fuzzing.graph import TensorType
from fuzzing.reduce.graphs import load


class OneValueLibrary:
    """A library that computes one array for every edge."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._value = Tensor.of(array)

    def reference(self, case: TestCase) -> list[tuple[str, Value]]:
        """The array for each output."""
        model = onnx.load_model_from_string(case.program.to_bytes())
        return [(item.name, self._value) for item in model.graph.output]


@pytest.mark.parametrize(
    ("dtype", "shape", "taken"),
    [("float64", (2,), 3), ("float32", (2,), 1), ("float64", (3,), 1), ("float64", (1, 2), 1)],
)
def test_a_value_of_another_type_than_the_edge_is_not_taken(
    dtype: str, shape: tuple[int, ...], taken: int
) -> None:
    text = "(double[2] x) => (double[2] y) { z = Abs(x) y = Relu(z) }"
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> g {text}')
    x = Tensor.of(np.ones(2))
    case = TestCase(
        OnnxModel(model.SerializeToString()), (("x", x),), Provenance("t", "t", "Abs", "onnx", "")
    )

    state = load(case, cast("Evaluator", OneValueLibrary(np.full(shape, 2, dtype))))
    assert set(state.graph.types) == {TensorType("float64", (2,))}
    assert state.tolerated == frozenset()
    assert len(state.values) == taken
