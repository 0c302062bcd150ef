"""Laws of random networks: acyclic, of bounded degree, the same from the same seed."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.generate.graph_search.networks import KINDS, NEIGHBORS, draw_residual, draw_watts_strogatz
from fuzzing.rng import Rng

sizes = st.integers(1, 30)
neighbors = st.sampled_from(NEIGHBORS)
seeds = st.integers(0, 1 << 40)


@pytest.mark.parametrize("kind", KINDS)
@given(nodes=sizes, count=neighbors, seed=seeds)
def test_networks_are_acyclic_and_reproducible(kind: str, nodes: int, count: int, seed: int) -> None:
    made = KINDS[kind](nodes, count, Rng(seed))
    assert sorted(made) == list(range(nodes))
    assert all(one < other for one, other in made.edges)
    assert nx.is_directed_acyclic_graph(made)
    assert nx.utils.graphs_equal(made, KINDS[kind](nodes, count, Rng(seed)))


@given(nodes=sizes, count=neighbors, seed=seeds, probability=st.floats(0, 1))
def test_residual_networks_are_chains_of_bounded_degree(
    nodes: int, count: int, seed: int, probability: float
) -> None:
    made = draw_residual(nodes, count, Rng(seed), probability)
    assert all(made.has_edge(node, node + 1) for node in range(nodes - 1))
    assert all(made.degree(node) <= max(count, 2) for node in made)


@given(nodes=sizes, count=neighbors, seed=seeds)
def test_rewiring_keeps_the_number_of_edges(nodes: int, count: int, seed: int) -> None:
    made = draw_watts_strogatz(nodes, count, Rng(seed))
    nearest = min(count, nodes - 1)
    assert made.number_of_edges() == nodes * (nearest // 2)
