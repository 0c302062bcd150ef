from __future__ import annotations

import numpy as np
import pytest

from fuzzing.graph.operator_spec import GraphLimits
from tests.support.nodes import floats, longs, shapes
from tests.support.operators import check, check_torch


@pytest.mark.parametrize("name", ["Pad", "CenterCropPad"])
def test_nodes_that_pad_are_valid(name: str) -> None:
    ran = check(name, (13, 18, 19, 21), seeds=25)
    assert all(item.outputs is not None for item in ran)
    check(name, (18,), ("float16", "int64", "bool", "uint8"), seeds=5)
    check(name, (21,), ("bfloat16", "uint16", "int16"), seeds=3, runs=False)
    for item in check(name, (18,), seeds=15, limits=GraphLimits(max_elements=30)):
        graph = item.generated.graph
        (node,) = graph.nodes
        assert graph.types[node.outputs[0]].elements <= max(30, graph.types[node.inputs[0] or 0].elements)


@pytest.mark.parametrize("name", ["Pad", "CenterCropPad"])
def test_padding_in_torch(name: str) -> None:
    assert check_torch(name, 19, ("float32", "int64", "uint8"), seeds=20) == 60


def test_pads_take_all_forms() -> None:
    ran = check("Pad", (19,), seeds=120)
    nodes = [item.generated.graph.nodes[0] for item in ran]
    modes = {node.attributes.get("mode") for node in nodes}
    assert modes == {None, "constant", "reflect", "edge", "wrap"}
    assert {len(node.inputs) for node in nodes} == {2, 3, 4}
    assert any(len(node.inputs) == 4 and node.inputs[2] is None for node in nodes)
    pads = [
        item.generated.graph.constants[node.inputs[1] or 0].array
        for item, node in zip(ran, nodes, strict=True)
    ]
    assert any((array < 0).any() for array in pads)
    assert "wrap" not in {
        item.generated.graph.nodes[0].attributes.get("mode") for item in check("Pad", (18,))
    }


def test_lengths_with_margins() -> None:
    assert shapes("Pad", [floats(3, 4), longs(1, -1, 0, 2)]) == [(4, 5)]
    assert shapes("Pad", [floats(3, 4), longs(1, 2), None, longs(-1)]) == [(3, 7)]
    assert shapes("Pad", [floats(3, None), longs(1, 1, 0, 0)]) == [(4, None)]
    assert shapes("Pad", [floats(3, 4), floats(4)._replace(dtype="int64")]) == [(None, None)]
    assert shapes("CenterCropPad", [floats(3, 4), longs(9)], {"axes": (-1,)}) == [(3, 9)]
    assert shapes("CenterCropPad", [floats(3, 4), np.array([1, 2], np.int32)]) == [(1, 2)]
