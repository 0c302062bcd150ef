from __future__ import annotations

import numpy as np
import pytest

from fuzzing.graph import operators
from tests.support.nodes import floats, longs, shapes
from tests.support.operators import check, check_torch


@pytest.mark.parametrize("name", ["Compress", "NonZero", "Unique", "NonMaxSuppression"])
def test_nodes_that_filter_are_valid(name: str) -> None:
    ran = check(name, (13, 21), seeds=20)
    assert all(item.outputs is not None for item in ran)
    if name != "NonMaxSuppression":
        check(name, (18,), ("int64", "int8", "bool", "uint16"), seeds=4, runs=False)
    assert operators.get_specification(name, 21).data_dependent == (name != "Compress")


def test_filters_in_torch() -> None:
    assert check_torch("Compress", 18, ("float32", "bool"), seeds=15) == 30
    assert check_torch("NonZero", 18, ("float32", "bool"), seeds=15) == 30


def test_constant_conditions_tell_the_length() -> None:
    for item in check("Compress", (18,), seeds=30):
        (node,) = item.generated.graph.nodes
        assert item.generated.graph.types[node.outputs[0]].static
    kept = np.array([True, False, True])
    assert shapes("Compress", [floats(2, 3), kept], {"axis": -1}) == [(2, 2)]
    assert shapes("Compress", [floats(2, 3), kept]) == [(2,)]
    assert shapes("Compress", [floats(2, 3), floats(3)._replace(dtype="bool")], {"axis": 0}) == [(None, 3)]


def test_unique_gives_one_to_four_outputs() -> None:
    nodes = [item.generated.graph.nodes[0] for item in check("Unique", (18,), seeds=40)]
    assert {len(node.outputs) for node in nodes} == {1, 2, 3, 4}
    assert shapes("Unique", [floats(2, 3)], outputs=4) == [(None,), (None,), (6,), (None,)]
    assert shapes("Unique", [floats(2, 3)], {"axis": -1}, outputs=3) == [(2, None), (None,), (3,)]


def test_boxes_are_kept() -> None:
    ran = check("NonMaxSuppression", (13,), seeds=30)
    assert any(item.outputs and item.outputs[0].shape[0] > 1 for item in ran)
    scores = floats(2, 1, 7)
    assert shapes("NonMaxSuppression", [floats(2, 7, 4), scores, longs(3)]) == [(None, 3)]
