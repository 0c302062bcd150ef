"""Models from networks: blocks are assigned to nodes, unfolded to operators, and given shapes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import networkx as nx

from fuzzing.coverage.operator_level import OperatorUse
from fuzzing.generate.generators import GeneratedGraph
from fuzzing.generate.graph_search.blocks import Block, BlockCorpus
from fuzzing.generate.graph_search.calculator import Calculator
from fuzzing.generate.graph_search.draft import GraphDraft
from fuzzing.generate.graph_search.networks import Network
from fuzzing.graph.operator_spec import GraphLimits
from fuzzing.graph.types import TensorType
from fuzzing.rng import Rng


@dataclass(frozen=True)
class AssembledModel:
    """A model, and what operator-level coverage sees of it."""

    generated: GeneratedGraph
    uses: tuple[OperatorUse, ...]


@dataclass
class _Placed:
    """An operator of the model: its output's edge, and the operators that consume it."""

    operator: str
    in_degree: int
    edge: int
    vector: Hashable
    successors: list[str] = field(default_factory=list)


def assign_blocks(network: Network, blocks: Sequence[Block], corpus: BlockCorpus, rng: Rng) -> list[Block]:
    """The block of each node, such that in-degrees agree as far as they can.

    Nodes choose in the order of their in-degrees, largest first, among the blocks that are left: one that may
    have that in-degree, else one of the largest in-degree below it, else any. A node without predecessors
    takes any block, as inputs of the model feed it. `trim_edges` repairs what still disagrees.
    """
    left = [blocks[place] for place in rng.permutation(len(blocks))]
    found: dict[int, Block] = {}
    for node in sorted(network, key=lambda node: -network.in_degree(node)):
        degree = network.in_degree(node)

        def mismatch(block: Block, degree: int = degree) -> int:
            allowed = corpus.in_degrees(block)
            if not degree or degree in allowed:
                return 0
            below = [one for one in allowed if one < degree]
            return degree - max(below) if below else len(blocks) + min(allowed)

        chosen = min(range(len(left)), key=lambda place: mismatch(left[place]))
        found[node] = left.pop(chosen)
    return [found[node] for node in sorted(network)]


def trim_edges(network: Network, blocks: Sequence[Block], corpus: BlockCorpus, rng: Rng) -> None:
    """Removes edges into nodes whose blocks take fewer inputs."""
    for node, block in enumerate(blocks):
        edges = sorted(network.in_edges(node))
        excess = len(edges) - max(corpus.in_degrees(block))
        if excess > 0:
            network.remove_edges_from([edges[place] for place in rng.permutation(len(edges))[:excess]])


class ModelAssembler:
    """Builds one model.

    shape       of its inputs
    parameters  probability that a node's parameters are mutated
    """

    def __init__(
        self,
        corpus: BlockCorpus,
        opset: int,
        limits: GraphLimits,
        rng: Rng,
        shape: tuple[int, ...],
        parameters: float,
    ) -> None:
        self._corpus = corpus
        self._draft = GraphDraft(opset, limits, rng)
        self._calculator = Calculator(self._draft)
        self._rng = rng
        self._type = TensorType("float32", shape)
        self._parameters = parameters
        self._placed: list[_Placed] = []

    def assemble(self, network: Network, blocks: Sequence[Block]) -> AssembledModel:
        """The model whose node i is `blocks[i]`; outputs are all that nothing consumes."""
        ends: dict[int, _Placed] = {}
        for node, block in enumerate(blocks):
            feeds = [ends[before] for before in sorted(network.predecessors(node))]
            ends[node] = self._add_block(block, feeds)
        graph = self._draft.finish([one.edge for one in self._placed if not one.successors])
        ranges = {edge: self._draft.ranges[edge] for edge in graph.inputs}
        uses = [
            OperatorUse(one.operator, one.in_degree, tuple(one.successors), one.vector)
            for one in self._placed
        ]
        return AssembledModel(GeneratedGraph(graph, ranges), tuple(uses))

    def _add_block(self, block: Block, feeds: list[_Placed]) -> _Placed:
        """Adds the operators of a block; returns the one whose output is the block's: the last sink."""
        inner: nx.MultiDiGraph[int] = nx.MultiDiGraph()
        inner.add_nodes_from(range(len(block.operators)))
        inner.add_edges_from(block.edges)
        made: dict[int, _Placed] = {}
        for place in nx.lexicographical_topological_sort(inner):
            before = [made[one] for one, _ in sorted(inner.in_edges(place))]
            made[place] = self._add_operator(block.operators[place], before, feeds, len(block.operators) == 1)
        return made[max(place for place in inner if not inner.out_degree(place))]

    def _add_operator(self, name: str, before: list[_Placed], feeds: list[_Placed], alone: bool) -> _Placed:
        """Adds an operator fed by those before it in its block, then from outside, then by new inputs."""
        operator = self._corpus.operators[name]
        degrees = operator.in_degrees
        wanted = len(feeds) if alone and len(feeds) in degrees else min(degrees)
        sources = before[: max(degrees)]
        while len(sources) < wanted and feeds:
            sources.append(feeds.pop(0))
        edges = [one.edge for one in sources]
        while len(edges) < wanted:
            edges.append(self._draft.placeholder(self._type))
        for one in sources:
            one.successors.append(name)
        mutated = bool(self._parameters) and self._rng.chance(self._parameters)
        edge, vector = self._calculator.add(operator, edges, mutated=mutated)
        placed = _Placed(name, len(edges), edge, vector)
        self._placed.append(placed)
        return placed
