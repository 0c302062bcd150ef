"""Random acyclic digraphs: Watts-Strogatz and residual networks (graph-based fuzz testing, ICSE 2021).

Nodes are 0 … n-1, and every edge leads from a smaller number to a larger one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

import networkx as nx

from fuzzing.rng import Rng

Network: TypeAlias = "nx.DiGraph[int]"
Draw: TypeAlias = Callable[[int, int, Rng], Network]

#: Probability that Watts-Strogatz rewires an edge (paper).
REWIRING = 0.5
#: Probability that a residual network adds an edge that is due (paper).
SKIPPING = 0.9
#: The numbers of neighbors, one of them drawn for each model (paper).
NEIGHBORS = (2, 4, 6)


def draw_watts_strogatz(nodes: int, neighbors: int, rng: Rng) -> Network:
    """A Watts-Strogatz graph, oriented from the smaller to the larger number.

    A ring in which each node is joined to its nearest `neighbors`, as far as there are so many others, and
    each edge is rewired with probability 0.5.
    """
    nearest = min(neighbors, nodes - 1)
    ring = nx.watts_strogatz_graph(nodes, nearest, REWIRING, seed=rng.below(1 << 31))
    made: Network = nx.DiGraph()
    made.add_nodes_from(range(nodes))
    made.add_edges_from(sorted((min(edge), max(edge)) for edge in ring.edges))
    return made


def draw_residual(nodes: int, neighbors: int, rng: Rng, probability: float = SKIPPING) -> Network:
    """RN(k, p, n): a chain with further edges, which leave no node more than max(k, 2) neighbors.

    Each node i with k_i < k neighbors is given k - k_i chances: a later node j with k_j < k, and the edge
    i → j with probability p.
    """
    made: Network = nx.DiGraph()
    made.add_nodes_from(range(nodes))
    made.add_edges_from((node, node + 1) for node in range(nodes - 1))
    degrees = {node: made.degree(node) for node in made}
    for node in range(nodes):
        for _ in range(neighbors - degrees[node]):
            later = [
                other
                for other in range(node + 1, nodes)
                if degrees[other] < neighbors and not made.has_edge(node, other)
            ]
            if later and rng.chance(probability):
                other = rng.choice(later)
                made.add_edge(node, other)
                degrees[node] += 1
                degrees[other] += 1
    return made


#: The kinds of networks by name.
KINDS: Mapping[str, Draw] = MappingProxyType(
    {"watts-strogatz": draw_watts_strogatz, "residual": draw_residual}
)
