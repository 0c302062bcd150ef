from __future__ import annotations

import pytest

from fuzzing.graph.operator_spec import GraphLimits
from tests.support.nodes import floats, longs, shapes
from tests.support.operators import check, check_torch

_NAMES = ("Concat", "Split", "Expand", "Tile")
_EMPTY = GraphLimits(min_rank=0, min_dim=0)
_TIGHT = GraphLimits(max_elements=40)


@pytest.mark.parametrize("name", _NAMES)
def test_nodes_that_join_and_split_are_valid(name: str) -> None:
    ran = check(name, seeds=15)
    assert all(item.outputs is not None for item in ran)
    check(name, (18,), ("float16", "int64", "bool", "uint8"), seeds=3)
    check(name, (21,), ("float64", "bfloat16", "int16", "uint32"), seeds=2, runs=False)
    check(name, (13, 18), seeds=8, limits=_EMPTY)


@pytest.mark.parametrize("name", _NAMES)
def test_joining_in_torch(name: str) -> None:
    assert check_torch(name, 18, ("float32", "bool"), seeds=10) == 20


@pytest.mark.parametrize("name", ["Expand", "Tile"])
def test_growth_is_bounded(name: str) -> None:
    for item in check(name, (18,), seeds=30, limits=_TIGHT):
        graph = item.generated.graph
        (node,) = graph.nodes
        primary = node.inputs[0]
        assert primary is not None
        assert graph.types[node.outputs[0]].elements <= max(40, graph.types[primary].elements)


def test_all_numbers_of_inputs_and_outputs_occur() -> None:
    nodes = [item.generated.graph.nodes[0] for item in check("Concat", (18,), seeds=60)]
    assert {len(node.inputs) for node in nodes} == {1, 2, 3, 4, 5}
    ran = check("Split", (13, 18), seeds=60)
    nodes = [item.generated.graph.nodes[0] for item in ran]
    assert {len(node.outputs) for node in nodes} == {1, 2, 3, 4, 5}
    assert {len(node.inputs) for node in nodes} == {1, 2}
    lengths = [{item.shape for item in ran.outputs} for ran in ran if ran.outputs and len(ran.outputs) > 1]
    assert any(len(found) > 1 for found in lengths)
    assert any(len(found) == 1 for found in lengths)


def test_lengths_of_parts() -> None:
    assert shapes("Split", [floats(7, 2)], {"num_outputs": 3}, outputs=3) == [(3, 2), (3, 2), (1, 2)]
    assert shapes("Split", [floats(2, 6)], {"axis": -1}, opset=13, outputs=2) == [(2, 3), (2, 3)]
    assert shapes("Split", [floats(2, 6), longs(1, 5)], {"axis": 1}, outputs=2) == [(2, 1), (2, 5)]
    unknown = floats(2)._replace(dtype="int64")
    assert shapes("Split", [floats(2, 6), unknown], {"axis": 1}, outputs=2) == [(2, None), (2, None)]


def test_lengths_put_together() -> None:
    assert shapes("Concat", [floats(2, 3), floats(2, 4)], {"axis": -1}) == [(2, 7)]
    assert shapes("Concat", [floats(None, 3), floats(2, None)], {"axis": 1}) == [(2, None)]
    assert shapes("Expand", [floats(3, 1), longs(2, 1, 6)]) == [(2, 3, 6)]
    assert shapes("Expand", [floats(3, 1), longs(4)]) == [(3, 4)]
    assert shapes("Tile", [floats(3, 1), longs(2, 0)]) == [(6, 0)]
