from __future__ import annotations

import pytest

from tests.support.boundary_values import use_boundary_values
from tests.support.operators import check, check_torch, single

NAMES = ("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss")


@pytest.mark.parametrize("name", NAMES)
def test_nodes_are_what_onnx_and_onnxruntime_say(name: str) -> None:
    check(name, (13, 22), ("float32", "float16", "float64"), 8)


@pytest.mark.parametrize("name", NAMES)
def test_bounds_hold_at_the_borders(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_boundary_values(monkeypatch)
    check(name, (21,), ("float32", "float16"), 12)


@pytest.mark.parametrize("name", NAMES)
def test_torch_computes_the_same(name: str) -> None:
    assert check_torch(name, 21, seeds=20) == 20


@pytest.mark.parametrize("name", NAMES)
def test_something_is_never_ignored(name: str) -> None:
    """The mean of nothing would be no number."""
    ignoring = 0
    for seed in range(100):
        graph = single(name, seed, 21).graph
        node = graph.nodes[0]
        if "ignore_index" in node.attributes:
            ignoring += 1
            labels = graph.constants[node.inputs[1] or 0].array
            assert (labels != node.attributes["ignore_index"]).any()
    assert ignoring
