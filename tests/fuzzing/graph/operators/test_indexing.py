from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.graph import operators
from fuzzing.graph.operator_spec import GraphLimits, NodeContext
from fuzzing.graph.operators.indexing import tuples
from fuzzing.rng import Rng
from tests.support.nodes import floats, shapes
from tests.support.operators import check, check_torch, single

_NAMES = ("Gather", "GatherElements", "GatherND")
_SCALARS = GraphLimits(min_rank=0)


@pytest.mark.parametrize("name", _NAMES)
def test_nodes_that_index_are_valid(name: str) -> None:
    ran = check(name, seeds=15)
    assert all(item.outputs is not None for item in ran)
    check(name, (18,), ("float16", "int64", "bool", "uint8"), seeds=3)
    check(name, (21,), ("float64", "bfloat16", "int16", "uint32"), seeds=2, runs=False)
    check(name, (13, 18), seeds=10, limits=_SCALARS)


@pytest.mark.parametrize("name", _NAMES)
def test_indexing_in_torch(name: str) -> None:
    assert check_torch(name, 18, ("float32", "int64"), seeds=15) == 30


def test_indices_count_from_both_ends() -> None:
    for name in ("Gather", "GatherElements", "GatherND"):
        ran = check(name, (18,), seeds=30)
        indices = [next(iter(item.generated.graph.constants.values())) for item in ran]
        assert any((constant.array < 0).any() for constant in indices)
        both = {"int32", "int64"}
        assert {constant.dtype for constant in indices} == ({"int64"} if name == "GatherND" else both)


def test_ranks_of_indices() -> None:
    ran = check("Gather", (18,), seeds=60)
    ranks = {next(iter(item.generated.graph.constants.values())).array.ndim for item in ran}
    assert {0, 1, 2, 3} <= ranks
    nodes = [item.generated.graph.nodes[0] for item in check("GatherND", seeds=40)]
    assert {node.attributes.get("batch_dims") for node in nodes} == {None, 0, 1, 2}


def test_shapes_of_what_is_gathered() -> None:
    indices = np.zeros((2, 3), np.int64)
    assert shapes("Gather", [floats(4, 5, 6), indices], {"axis": -2}) == [(4, 2, 3, 6)]
    assert shapes("GatherND", [floats(2, 4, 5), indices], {"batch_dims": 0}) == [(2,)]
    assert shapes("GatherND", [floats(2, 4, 5), np.zeros((2, 1), np.int64)], {"batch_dims": 1}) == [(2, 5)]
    assert shapes("GatherElements", [floats(4, 5), indices], {"axis": 1}) == [(2, 3)]


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(0, 2**32), st.data())
def test_distinct_places_are_distinct(lengths: list[int], seed: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, int(np.prod(lengths))))
    context = NodeContext(operators.get_specification("ScatterND", 21), 21, GraphLimits(), Rng(seed), 3)
    flat = np.array(tuples(context, lengths, count, distinct=True)).reshape(count, len(lengths))
    places = np.where(flat < 0, flat + np.array(lengths), flat)
    assert len({tuple(place) for place in places.tolist()}) == count
    assert (places >= 0).all()
    assert (places < np.array(lengths)).all()


def test_every_line_is_gathered_from() -> None:
    """ONNX's reference implementation of GatherElements refuses indices for some of the lines only."""
    for seed in range(80):
        graph = single("GatherElements", seed, limits=GraphLimits(max_dim=12)).graph
        [node] = graph.nodes
        data, indices = [graph.types[edge].lengths for edge in node.inputs if edge is not None]
        axis = dict(node.attributes).get("axis", 0)
        assert isinstance(axis, int)
        others = [place for place in range(len(data)) if place != axis % len(data)]
        assert [indices[place] for place in others] == [data[place] for place in others]
