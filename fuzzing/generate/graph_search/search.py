"""The main loop of graph-based fuzzing: choose blocks, draw a network, mutate, assemble, keep what is new."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from fuzzing.coverage.operator_level import OperatorLevelCoverage
from fuzzing.generate.graph_search import mutations, networks
from fuzzing.generate.graph_search.assembly import (
    AssembledModel,
    ModelAssembler,
    assign_blocks,
    trim_edges,
)
from fuzzing.generate.graph_search.blocks import FUSION, PAPER, Block, BlockCorpus, load_corpus
from fuzzing.generate.graph_search.choosers import CHOOSERS, Choice
from fuzzing.graph.operator_spec import GraphLimits
from fuzzing.rng import Rng

#: The input shapes, one of them drawn for each model. The paper has five and does not name them.
SHAPES = ((1, 4, 8, 8), (1, 3, 10, 10), (2, 4, 6, 5), (1, 8, 4, 4), (2, 2, 7, 7))
#: The longest length that the tensor shape mutation gives an input.
_MUTATED_LENGTH = 12
#: Models without new coverage in a row, after which one is accepted nevertheless.
_TRIES = 20


@dataclass(frozen=True)
class SearchSettings:
    """How models are searched.

    blocks     the least and the most blocks of a model
    chooser    a name of `choosers.CHOOSERS`
    kinds      names of `networks.KINDS`, one of them drawn for each model
    mutations  whether the six mutations are applied
    subgraphs  folders of the corpus, beside the 50 operators
    """

    blocks: tuple[int, int] = (1, 10)
    chooser: str = "tree"
    kinds: tuple[str, ...] = ("watts-strogatz", "residual")
    mutations: bool = True
    subgraphs: tuple[str, ...] = (PAPER, FUSION)


@dataclass(frozen=True)
class SearchStep:
    """An accepted model.

    gain   how many facts of operator-level coverage it adds
    shown  how many facts it shows
    tries  models made for it, itself included
    """

    model: AssembledModel
    choice: Choice
    gain: int
    shown: int
    tries: int


class Search:
    """A search: coverage and tree last over all of its models."""

    def __init__(
        self, settings: SearchSettings, opset: int, limits: GraphLimits, corpus: BlockCorpus | None = None
    ) -> None:
        self.settings = settings
        self.corpus = corpus or load_corpus(*settings.subgraphs)
        self.coverage = OperatorLevelCoverage(self.corpus.degree_bounds())
        self.chooser = CHOOSERS[settings.chooser](self.corpus, self.coverage)
        self.choosing_s = 0.0  # seconds the chooser took itself
        self._opset = opset
        self._limits = limits

    def advance(self, seed: int) -> SearchStep:
        """The next model that adds coverage; `reward` is to be called for it once its worth is known."""
        rng = Rng(seed)
        for tries in range(1, _TRIES + 1):
            begin = time.perf_counter()
            choice = self.chooser.choose(rng.between(*self.settings.blocks), rng)
            self.choosing_s += time.perf_counter() - begin
            model = self._assemble(choice.blocks, rng)
            gain = self.coverage.add(model.uses)
            if gain:
                break
            if tries < _TRIES:
                self.chooser.feed_back(choice, 0.0)
        shown = sum(4 + len(set(use.successors)) for use in model.uses)
        return SearchStep(model, choice, gain, shown, tries)

    def reward(self, step: SearchStep, reward: float) -> None:
        """Feeds the worth of a step's model back to the chooser, from 0 to 1."""
        begin = time.perf_counter()
        self.chooser.feed_back(step.choice, reward)
        self.choosing_s += time.perf_counter() - begin

    def _assemble(self, blocks: Sequence[Block], rng: Rng) -> AssembledModel:
        rates = _draw_rates(rng) if self.settings.mutations else _NO_RATES
        draw = networks.KINDS[rng.choice(self.settings.kinds)]
        network = draw(len(blocks), rng.choice(networks.NEIGHBORS), rng)
        mutations.add_edges(network, rates.edges_added, rng)
        mutations.remove_edges(network, rates.edges_removed, rng)
        blocks = [_mutate_block(block, rates, rng) for block in blocks]
        shape = mutations.mutate_shape(rng.choice(SHAPES), rates.shape, _MUTATED_LENGTH, rng)
        assigned = assign_blocks(network, blocks, self.corpus, rng)
        trim_edges(network, assigned, self.corpus, rng)
        assembler = ModelAssembler(self.corpus, self._opset, self._limits, rng, shape, rates.parameters)
        return assembler.assemble(network, assigned)


@dataclass(frozen=True)
class _Rates:
    """The mutation probability r of each of the six mutations."""

    edges_added: float = 0.0
    edges_removed: float = 0.0
    nodes_added: float = 0.0
    nodes_removed: float = 0.0
    shape: float = 0.0
    parameters: float = 0.0


_NO_RATES = _Rates()


def _draw_rates(rng: Rng) -> _Rates:
    return _Rates(*[rng.choice(mutations.RATES) for _ in range(6)])


def _mutate_block(block: Block, rates: _Rates, rng: Rng) -> Block:
    """BNA, then BNR, of a subgraph; an operator stays as it is."""
    if len(block.operators) == 1:
        return block
    inner = mutations.add_block_nodes(block.operators, block.edges, rates.nodes_added, rng)
    inner = mutations.remove_block_nodes(*inner, rates.nodes_removed, rng)
    return block if inner == (block.operators, block.edges) else Block(block.name, *inner)
