from __future__ import annotations

import math

import pytest

from tests.support.boundary_values import use_boundary_values
from tests.support.nodes import floats, inferred
from tests.support.operators import check, check_torch, single

NAMES = (
    "BatchNormalization", "InstanceNormalization", "GroupNormalization", "LayerNormalization",
    "RMSNormalization", "LRN",
)  # fmt: skip
OPSETS = (13, 18, 21, 23)


@pytest.mark.parametrize("name", NAMES)
def test_nodes_are_what_onnx_and_onnxruntime_say(name: str) -> None:
    check(name, OPSETS, ("float32", "float16"), 5)


@pytest.mark.parametrize("name", NAMES)
def test_bounds_hold_at_the_borders(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of equal numbers among them, whose variance is zero but for rounding."""
    use_boundary_values(monkeypatch)
    check(name, (23,), ("float32", "float16"), 12)


@pytest.mark.parametrize("name", NAMES)
def test_torch_computes_the_same(name: str) -> None:
    assert check_torch(name, 23, seeds=15) == 15


def test_layer_normalization_keeps_the_axes_before() -> None:
    inputs = (floats(2, 3, 4), floats(3, 4))
    found = inferred("LayerNormalization", 21, inputs, {"axis": -2}, outputs=3)
    assert [str(type_) for type_ in found] == ["float32[2,3,4]", "float32[2,1,1]", "float32[2,1,1]"]


def test_instances_have_several_elements() -> None:
    """Of one, all that is left is the rounding of x·s + (b - x·s)."""
    for seed in range(60):
        graph = single("InstanceNormalization", seed).graph
        primary = graph.nodes[0].inputs[0]
        assert primary is not None
        assert math.prod(graph.types[primary].lengths[2:]) > 1
