from __future__ import annotations

import numpy as np
import pytest

from fuzzing.graph.intervals import FULL_RANGES
from fuzzing.graph.ir import Constant
from tests.support.operators import Ran, check, check_torch

_NAMES = ("ScatterElements", "ScatterND")


def _indices(item: Ran) -> Constant:
    return next(iter(item.generated.graph.constants.values()))


@pytest.mark.parametrize("name", _NAMES)
def test_nodes_that_scatter_are_valid(name: str) -> None:
    ran = check(name, (13, 16, 18), seeds=20)
    assert all(item.outputs is not None for item in ran)
    nodes = [item.generated.graph.nodes[0] for item in ran]
    assert {node.attributes.get("reduction") for node in nodes} == {None, "none", "add", "mul", "max", "min"}
    check(name, (13, 18), ("int64", "bool", "uint8", "int8"), seeds=6)
    # onnxruntime 1.31 refuses reductions of float16 when it runs them.
    check(name, (13,), ("float16", "bfloat16", "uint16"), seeds=2, runs=False)


@pytest.mark.parametrize("name", _NAMES)
def test_scattering_in_torch(name: str) -> None:
    assert check_torch(name, 18, ("float32", "int64", "uint8"), seeds=15) == 45


def test_elements_are_written_to_once_where_the_last_would_win() -> None:
    for item in check("ScatterElements", (13, 18), seeds=40):
        graph = item.generated.graph
        (node,) = graph.nodes
        if node.attributes.get("reduction") not in (None, "none"):
            continue
        primary = graph.types[node.inputs[0] or 0].lengths
        axis = node.attributes.get("axis", 0)
        assert isinstance(axis, int)
        array = np.moveaxis(_indices(item).array, axis, -1)
        places = np.where(array < 0, array + primary[axis], array).reshape(-1, array.shape[-1])
        assert all(len(set(line)) == len(line) for line in places.tolist())
    for item in check("ScatterND", (13, 18), seeds=40):
        graph = item.generated.graph
        (node,) = graph.nodes
        if node.attributes.get("reduction") not in (None, "none"):
            continue
        array = _indices(item).array
        lengths = np.array(graph.types[node.inputs[0] or 0].lengths[: array.shape[-1]])
        places = np.where(array < 0, array + lengths, array).reshape(-1, array.shape[-1])
        assert len(np.unique(places, axis=0)) == len(places)


def test_bounds_hold_the_sums_of_all_updates() -> None:
    for item in check("ScatterND", (18,), ("int8", "float32"), seeds=30):
        graph = item.generated.graph
        (output,) = graph.nodes[0].outputs
        assert FULL_RANGES[graph.types[output].dtype].contains(item.generated.ranges[output])


def test_updates_of_a_cache_stay_inside() -> None:
    ran = check("TensorScatter", (24,), seeds=60)
    assert all(item.outputs is not None for item in ran)
    check("TensorScatter", (24, 26), ("float16", "int8", "bool"), seeds=4)
    assert check_torch("TensorScatter", 24, ("float32", "int64"), seeds=20) == 40
    nodes = [item.generated.graph.nodes[0] for item in ran]
    assert {node.attributes.get("mode") for node in nodes} == {None, "linear", "circular"}
    assert {len(node.inputs) for node in nodes} == {2, 3}
    assert None in {node.attributes.get("axis") for node in nodes}
