"""How much operator-level coverage a block is expected to add to a model whose other blocks are known.

An operator's first use adds to all five metrics. Afterwards two are left to gain: SEC, by pairs of operators
that no model has, and SPC, by new vectors. Models of the same blocks repeat the same pairs.
"""

from __future__ import annotations

from collections.abc import Iterable

from fuzzing.coverage.operator_level import OperatorLevelCoverage
from fuzzing.generate.graph_search.blocks import Block, BlockCorpus
from fuzzing.rng import Rng


class ExpectedGain:
    """The expected gain of each operator that is a block, as a further one of a model of `count` blocks.

    Networks are random, so each input of an operator is fed by each other block of the model with the same
    probability, 1 / (count - 1). An operator has the most inputs that it takes: nodes of larger in-degree
    choose their blocks first. A use has a new vector as often as recent ones had. Operators that only occur
    inside of subgraphs have fixed neighbors there, so pairs with them are not to be expected.
    """

    def __init__(
        self, corpus: BlockCorpus, coverage: OperatorLevelCoverage, blocks: Iterable[Block], count: int
    ) -> None:
        self._corpus = corpus
        self._coverage = coverage
        self._inputs = {name: max(one.in_degrees) for name, one in corpus.operators.items()}
        self._pair = coverage.weights["SEC"] / len(coverage.operators) / max(1, count - 1)
        self._gains = {name: self._alone(name) for name in coverage.operators if name in corpus.blocks}
        for block in blocks:
            self.add(block)

    def _alone(self, name: str) -> float:
        """The gain of a use whatever its neighbors are."""
        coverage, weights = self._coverage, self._coverage.weights
        gain = weights["SPC"] / coverage.max_spc * coverage.novelty(name)
        if coverage.occurs(name):
            return gain
        bounds = coverage.operators[name]
        degrees = weights["IDC"] / len(bounds.in_degrees) + weights["ODC"] / len(bounds.out_degrees)
        return gain + weights["OTC"] + degrees

    def add(self, block: Block) -> None:
        """Tells that the model has this block too."""
        successors = self._coverage.successors
        for name in block.operators:
            followers, inputs = successors(name), self._inputs[name]
            for other in self._gains:
                new = self._inputs[other] * (other not in followers)
                new += inputs * (name not in successors(other))
                self._gains[other] += self._pair * new

    def best(self, rng: Rng) -> Block:
        """The operator of the largest gain as a block, or a subgraph that contains it."""
        most = max(self._gains.values())
        operator = rng.choice([name for name, gain in self._gains.items() if gain == most])
        return rng.choice(self._corpus.containing[operator])
