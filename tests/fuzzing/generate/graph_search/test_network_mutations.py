"""The paper's mutations of networks and blocks: how much they add and remove, rounding included."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.generate.graph_search import mutations
from fuzzing.generate.graph_search.networks import KINDS, Network
from fuzzing.rng import Rng

seeds = st.integers(0, 1 << 40)


@st.composite
def drawn_networks(draw: st.DrawFn) -> Network:
    kind = draw(st.sampled_from(sorted(KINDS)))
    return KINDS[kind](draw(st.integers(1, 15)), draw(st.sampled_from((2, 4))), Rng(draw(seeds)))


@given(drawn_networks(), st.sampled_from(mutations.RATES), seeds)
def test_edges_are_added_up_to_the_next_whole_number(network: Network, rate: float, seed: int) -> None:
    before, nodes = set(network.edges), len(network)
    mutations.add_edges(network, rate, Rng(seed))
    room = nodes * (nodes - 1) // 2 - len(before)
    assert network.number_of_edges() - len(before) == min(room, math.ceil(nodes * Fraction(str(rate))))
    assert before <= set(network.edges)
    assert all(one < other for one, other in network.edges)


@given(drawn_networks(), st.sampled_from(mutations.RATES), seeds)
def test_edges_are_removed_down_to_the_whole_number_below(network: Network, rate: float, seed: int) -> None:
    before = set(network.edges)
    mutations.remove_edges(network, rate, Rng(seed))
    assert len(before) - network.number_of_edges() == min(
        len(before), math.floor(len(network) * Fraction(str(rate)))
    )
    assert set(network.edges) <= before


@pytest.mark.parametrize(("nodes", "added", "removed"), [(5, 1, 0), (10, 1, 1), (15, 2, 1)])
def test_additions_round_up_and_removals_down(nodes: int, added: int, removed: int) -> None:
    network = KINDS["residual"](nodes, 2, Rng(0))
    before = network.number_of_edges()
    mutations.add_edges(network, 0.1, Rng(1))
    assert network.number_of_edges() == before + added
    mutations.remove_edges(network, 0.1, Rng(1))
    assert network.number_of_edges() == before + added - removed


OPERATORS, EDGES = ("A", "B", "C", "D"), ((0, 2), (1, 2), (2, 3), (2, 3))


def test_all_operators_of_a_block_are_duplicated_at_probability_1() -> None:
    operators, edges = mutations.add_block_nodes(OPERATORS, EDGES, 1.0, Rng(0))
    assert operators == OPERATORS * 2
    assert sorted(edges) == sorted([(0, 4), (1, 5), (2, 6), (3, 7), (4, 2), (5, 2), (6, 3), (6, 3)])


@given(st.floats(0, 1), seeds)
def test_a_block_keeps_an_operator_and_no_dangling_edge(rate: float, seed: int) -> None:
    operators, edges = mutations.remove_block_nodes(OPERATORS, EDGES, rate, Rng(seed))
    assert operators
    assert all(0 <= one < len(operators) and 0 <= other < len(operators) for one, other in edges)
    kept = set(operators)
    expected = [pair for pair in EDGES if OPERATORS[pair[0]] in kept and OPERATORS[pair[1]] in kept]
    assert [(operators[one], operators[other]) for one, other in edges] == [
        (OPERATORS[one], OPERATORS[other]) for one, other in expected
    ]


def test_nothing_changes_at_probability_0() -> None:
    assert mutations.add_block_nodes(OPERATORS, EDGES, 0.0, Rng(0)) == (OPERATORS, EDGES)
    assert mutations.remove_block_nodes(OPERATORS, EDGES, 0.0, Rng(0)) == (OPERATORS, EDGES)
    assert mutations.mutate_shape((1, 4, 8, 8), 0.0, 12, Rng(0)) == (1, 4, 8, 8)


@given(st.lists(st.integers(1, 9), max_size=5), seeds)
def test_a_mutated_shape_keeps_its_rank(shape: list[int], seed: int) -> None:
    found = mutations.mutate_shape(shape, 1.0, 12, Rng(seed))
    assert len(found) == len(shape)
    assert all(1 <= length <= 12 for length in found)
