"""Inputs drawn for recorded ONNX models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from fuzzing.cases import Recipe, Tensor
from fuzzing.cases.values import CARRIERS, STRING, Value
from fuzzing.migrate import onnx_input_values
from fuzzing.migrate.onnx_input_values import Bounds, CannotDrawError

SHAPES = st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple)


def elements(value: Any) -> np.ndarray[Any, Any]:
    drawn: Value = value.draw() if isinstance(value, Recipe) else value
    assert isinstance(drawn, Tensor)
    return drawn.array()


@given(SHAPES, st.data())
def test_indices_point_into_what_they_index(shape: tuple[int, ...], data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    node = helper.make_node("Gather", ["x", "i"], ["y"], axis=axis)
    found = elements(onnx_input_values.draw_input(node, 1, "int64", (7,), [shape, (7,)]))
    assert found.min() >= 0
    assert found.max() < shape[axis]


@given(SHAPES)
def test_indices_into_all_axes_fit_the_shortest(shape: tuple[int, ...]) -> None:
    node = helper.make_node("ScatterND", ["x", "i", "u"], ["y"])
    found = elements(onnx_input_values.draw_input(node, 1, "int64", (9, 1), [shape, (9, 1), None]))
    assert found.min() >= 0
    assert found.max() < min(shape)


def test_classes_lie_below_their_number() -> None:
    node = helper.make_node("NegativeLogLikelihoodLoss", ["x", "t"], ["y"])
    found = elements(onnx_input_values.draw_input(node, 1, "int64", (64,), [(64, 3), (64,)]))
    assert set(found.tolist()) == {0, 1, 2}


@pytest.mark.parametrize(
    ("operator", "place", "dtype", "least", "most"),
    [
        ("Relu", 0, "float32", -1, 1),
        ("Relu", 0, "int32", 0, 1),
        ("Log", 0, "float64", 0.1, 2),
        ("Acosh", 0, "float16", 1, 3),
        ("Div", 1, "int8", 1, 7),
        ("Bernoulli", 0, "float32", 0, 1),
        ("BatchNormalization", 4, "float32", 0.5, 1.5),
    ],
)
def test_values_lie_in_the_operators_domain(
    operator: str, place: int, dtype: str, least: float, most: float
) -> None:
    node = helper.make_node(operator, [f"x{index}" for index in range(place + 1)], ["y"])
    found = elements(onnx_input_values.draw_input(node, place, dtype, (100,), [(100,)] * (place + 1)))
    assert found.dtype == np.dtype(dtype)
    assert least <= found.min() < found.max() <= most


@pytest.mark.parametrize(("operator", "place"), [("Reshape", 1), ("ReduceSum", 1), ("Slice", 2)])
def test_what_decides_a_shape_is_not_drawn(operator: str, place: int) -> None:
    node = helper.make_node(operator, ["a", "b", "c"], ["y"])
    with pytest.raises(CannotDrawError, match="decides the shape"):
        onnx_input_values.draw_input(node, place, "int64", (1,), [(2, 3), (1,), (1,)])


@pytest.mark.parametrize("dtype", [*CARRIERS, STRING])
def test_every_element_type_can_be_drawn(dtype: str) -> None:
    found = onnx_input_values.draw(dtype, (2, 3), Bounds(0, 1), 5)
    again = onnx_input_values.draw(dtype, (2, 3), Bounds(0, 1), 5)
    assert found == again
    assert elements(found).shape == (2, 3)


def test_a_graphs_input_is_drawn_for_whoever_takes_it_first() -> None:
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Sqrt", ["a"], ["h"]), helper.make_node("Neg", ["a"], ["y"])],
        "graph",
        [info("a", TensorProto.FLOAT, (2,)), info("unused", TensorProto.INT64, (2,))],
        [],
    )
    positive = onnx_input_values.draw_graph_input(graph, "a", "float32", (2,), 3)
    assert positive == Recipe("uniform", "float32", (2,), 0.1, 2.0, 3)
    assert onnx_input_values.draw_graph_input(graph, "unused", "int64", (2,), 4) == Recipe(
        "integers", "int64", (2,), 0, 1, 4
    )
