from __future__ import annotations

import pytest

from fuzzing.graph import operators
from tests.support.nodes import floats, shapes
from tests.support.operators import check, check_torch


@pytest.mark.parametrize("name", ["DepthToSpace", "SpaceToDepth"])
def test_nodes_that_move_blocks_are_valid(name: str) -> None:
    ran = check(name, seeds=20)
    assert all(item.outputs is not None for item in ran)
    sizes = {item.generated.graph.nodes[0].attributes["blocksize"] for item in ran}
    assert {1, 2} < sizes
    check(name, (13, 26), ("float16", "int8", "uint8"), seeds=3)
    check(name, (21,), ("float64", "bfloat16", "uint16", "int32", "uint64", "bool"), seeds=2, runs=False)
    assert check_torch(name, 18, ("float32", "uint8"), seeds=15) == 30


def test_both_orders_of_elements_occur() -> None:
    nodes = [item.generated.graph.nodes[0] for item in check("DepthToSpace", (18,), seeds=30)]
    assert {node.attributes.get("mode") for node in nodes} == {None, "DCR", "CRD"}
    assert "mode" not in operators.get_specification("SpaceToDepth", 27).defaults
    assert "mode" in operators.get_specification("SpaceToDepth", 28).defaults


def test_blocks_move_between_depth_and_space() -> None:
    assert shapes("DepthToSpace", [floats(2, 12, 3, 1)], {"blocksize": 2}) == [(2, 3, 6, 2)]
    assert shapes("SpaceToDepth", [floats(2, 3, 6, 2)], {"blocksize": 2}) == [(2, 12, 3, 1)]
