from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.graph import TensorType, operators
from fuzzing.graph.operators.einsum import parse
from tests.support.boundary_values import use_boundary_values
from tests.support.nodes import floats, inferred
from tests.support.operators import check, check_torch, single


def test_nodes_are_what_onnx_and_onnxruntime_say() -> None:
    check("Einsum", (13, 21), ("float32", "float64", "int32"), 12)


def test_bounds_hold_at_the_borders(monkeypatch: pytest.MonkeyPatch) -> None:
    use_boundary_values(monkeypatch)
    check("Einsum", (21,), ("float32", "float16", "int64"), 12)


def test_torch_computes_the_same() -> None:
    assert check_torch("Einsum", 21, seeds=30) == 30


@given(st.integers(0, 10**6))
def test_shapes_are_numpys(seed: int) -> None:
    graph = single("Einsum", seed, 21).graph
    node = graph.nodes[0]
    arrays = [np.zeros(graph.types[edge].lengths, np.float32) for edge in node.inputs if edge is not None]
    assert np.einsum(str(node.attributes["equation"]), *arrays).shape == graph.types[node.outputs[0]].shape


@pytest.mark.parametrize(
    ("equation", "shapes", "shape"),
    [
        ("...ij, ...jk -> ...ik", ((5, 1, 2, 3), (1, 4, 3, 6)), (5, 4, 2, 6)),
        ("ba", ((2, 3),), (3, 2)),
        ("ij,jk", ((2, 3), (3, 4)), (2, 4)),
        ("i...->...", ((2, 3, 4),), (3, 4)),
        ("ij->", ((2, 3),), ()),
    ],
)
def test_forms_of_equations(
    equation: str, shapes: tuple[tuple[int, ...], ...], shape: tuple[int, ...]
) -> None:
    inputs = [floats(*one) for one in shapes]
    assert inferred("Einsum", 21, inputs, {"equation": equation})[0].shape == shape


def test_an_output_that_is_implied_has_what_occurs_once() -> None:
    assert parse("...b,ba").output == ".a"


def test_sums_of_everything_stay_within_the_type() -> None:
    within = operators.get_specification("Einsum", 21).within
    type_ = TensorType("float16", (128, 128))
    assert within(type_).high * math.prod(type_.lengths) <= 6e3
