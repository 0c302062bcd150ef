from __future__ import annotations

import numpy as np
import pytest

from tests.support.boundary_values import use_boundary_values
from tests.support.operators import check, check_torch, single

NAMES = ("MatMulInteger", "ConvInteger", "QLinearMatMul", "QLinearConv")


@pytest.mark.parametrize("name", NAMES)
def test_nodes_are_what_onnx_and_onnxruntime_say(name: str) -> None:
    check(name, (13, 21), ("int8", "uint8"), 8)


@pytest.mark.parametrize("name", NAMES)
def test_bounds_hold_at_the_borders(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_boundary_values(monkeypatch)
    check(name, (21,), ("int8", "uint8"), 8)


@pytest.mark.parametrize("name", ["MatMulInteger", "ConvInteger"])
def test_torch_computes_the_same(name: str) -> None:
    assert check_torch(name, 21, ("int8", "uint8"), seeds=10) == 20


def test_filters_have_one_scale_or_one_each() -> None:
    shapes = set()
    for seed in range(60):
        graph = single("QLinearConv", seed, 21, ("uint8",)).graph
        weight, scale, zero = (graph.types[edge or 0].lengths for edge in graph.nodes[0].inputs[3:6])
        assert scale == zero
        assert scale in ((), weight[:1])
        shapes.add(len(scale))
    assert shapes == {0, 1}


@pytest.mark.parametrize("name", ["QLinearMatMul", "QLinearConv"])
def test_scales_of_quantized_results_are_powers_of_two(name: str) -> None:
    """So that ties are ties in every order of multiplication, and rounded to even."""
    for seed in range(40):
        graph = single(name, seed, 21, ("uint8",)).graph
        scales = [item.array for item in graph.constants.values() if item.array.dtype == np.float32]
        assert len(scales) == 3
        assert all((np.frexp(scale)[0] == 0.5).all() for scale in scales)
