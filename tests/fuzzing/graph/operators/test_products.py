from __future__ import annotations

import pytest

from fuzzing.graph import operators
from fuzzing.graph.operator_spec import GraphLimits
from tests.support.boundary_values import use_boundary_values
from tests.support.nodes import floats, inferred
from tests.support.operators import check, check_torch, single

NAMES = ("Gemm", "MatMul", "Det")


@pytest.mark.parametrize("name", NAMES)
def test_nodes_are_what_onnx_and_onnxruntime_say(name: str) -> None:
    check(name, (13, 23), ("float32", "float16"), 10)


def test_products_of_whole_numbers() -> None:
    check("MatMul", (21,), ("int32", "int64", "uint32", "uint64"), 6)


@pytest.mark.parametrize("name", NAMES)
def test_bounds_hold_at_the_borders(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_boundary_values(monkeypatch)
    dtypes = [x for x in ("float32", "float16", "int32") if x in operators.get_specification(name, 21).dtypes]
    check(name, (21,), dtypes, 8)


@pytest.mark.parametrize("name", NAMES)
def test_torch_computes_the_same(name: str) -> None:
    assert check_torch(name, 21, seeds=20) == 20


@pytest.mark.parametrize(
    ("first", "second", "shape"),
    [
        ((3,), (3,), ()),
        ((3,), (2, 3, 4), (2, 4)),
        ((2, 3), (3,), (2,)),
        ((5, 1, 2, 3), (4, 3, 6), (5, 4, 2, 6)),
    ],
)
def test_shapes_of_products(first: tuple[int, ...], second: tuple[int, ...], shape: tuple[int, ...]) -> None:
    assert inferred("MatMul", 21, (floats(*first), floats(*second)))[0].shape == shape


def test_long_factors_do_not_multiply() -> None:
    """A column by a row has as many elements as both lengths multiplied: no more than the limit."""
    limits = GraphLimits(max_dim=64, max_elements=256)
    for seed in range(60):
        graph = single("MatMul", seed, limits=limits).graph
        primary, out = (
            graph.types[edge].elements for edge in (graph.nodes[0].inputs[0] or 0, graph.outputs[-1])
        )
        others = [graph.types[edge].elements for edge in graph.inputs]
        assert out <= max(256, primary, *others)
