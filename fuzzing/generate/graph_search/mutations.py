"""Mutations of a network of blocks, at the model level (graph-based fuzz testing, ICSE 2021).

`rate` is the mutation probability r, one of 0, 0.1 and 0.2, drawn for each mutation. The paper writes E(g)
for the number of nodes, and rounds what it adds up and what it removes down.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

import networkx as nx

from fuzzing.rng import Rng

#: The mutation probabilities, one of them drawn for each mutation of a model (paper).
RATES = (0.0, 0.1, 0.2)

#: The operators of a block and its inner edges, pairs of their indices; a pair may occur twice.
Inner: TypeAlias = tuple[tuple[str, ...], tuple[tuple[int, int], ...]]


def _share(nodes: int, rate: float) -> Fraction:
    """The exact share: 10 · 0.1 is 1, and rounds up to 1."""
    return nodes * Fraction(str(rate))


def add_edges(network: nx.DiGraph[int], rate: float, rng: Rng) -> None:
    """GEA: adds ⌈E(g)·r⌉ edges from smaller to larger numbers, fewer only where none is left to add."""
    free = [
        (one, other)
        for one in network
        for other in network
        if one < other and not network.has_edge(one, other)
    ]
    count = min(len(free), math.ceil(_share(len(network), rate)))
    network.add_edges_from(free[place] for place in rng.permutation(len(free))[:count])


def remove_edges(network: nx.DiGraph[int], rate: float, rng: Rng) -> None:
    """GER: removes ⌊E(g)·r⌋ edges, fewer only where there are not so many."""
    edges = sorted(network.edges)
    count = min(len(edges), math.floor(_share(len(network), rate)))
    network.remove_edges_from([edges[place] for place in rng.permutation(len(edges))[:count]])


def add_block_nodes(
    operators: Sequence[str], edges: Sequence[tuple[int, int]], rate: float, rng: Rng
) -> Inner:
    """BNA: duplicates each operator of a block with probability r; the copy follows the original.

    The copy takes over the original's inner edges to others, so the block keeps its sinks and its inputs.
    """
    names, links = list(operators), list(edges)
    for place, name in enumerate(operators):
        if rng.chance(rate):
            copy = len(names)
            names.append(name)
            links = [(copy if one == place else one, other) for one, other in links]
            links.append((place, copy))
    return tuple(names), tuple(links)


def remove_block_nodes(
    operators: Sequence[str], edges: Sequence[tuple[int, int]], rate: float, rng: Rng
) -> Inner:
    """BNR: removes each operator of a block, with its edges, with probability r; at least one stays."""
    kept = [place for place in range(len(operators)) if not rng.chance(rate)]
    kept = kept or [rng.below(len(operators))]
    numbers = {place: number for number, place in enumerate(kept)}
    links = [(numbers[one], numbers[other]) for one, other in edges if one in numbers and other in numbers]
    return tuple(operators[place] for place in kept), tuple(links)


def mutate_shape(shape: Sequence[int], rate: float, longest: int, rng: Rng) -> tuple[int, ...]:
    """TSM: the shape of the model's inputs, each length redrawn from 1 to `longest` with probability r."""
    return tuple([rng.between(1, longest) if rng.chance(rate) else length for length in shape])
