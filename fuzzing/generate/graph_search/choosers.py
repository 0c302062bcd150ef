"""Which blocks a model is made of: chosen by tree search, or at random as its baseline.

The tree search is the block chooser of graph-based fuzz testing (ICSE 2021): a node of the tree is a block,
and a path from the root is a model's blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

from fuzzing.coverage.operator_level import OperatorLevelCoverage
from fuzzing.generate.graph_search.blocks import Block, BlockCorpus
from fuzzing.generate.graph_search.expected_gain import ExpectedGain
from fuzzing.rng import Rng

#: The weight of exploration in UCT (paper: e = 1/√2).
EXPLORATION = 1 / math.sqrt(2)
#: The most levels of the tree below its root (paper: tc1 = 10).
MAX_DEPTH = 10
#: How often the path to a node is simulated (paper: tc2 = 1).
SIMULATIONS = 1
#: The most children of a node (paper).
MAX_CHILDREN = 3
#: The share of a model's blocks that its path gives at most: models that repeat long paths repeat the pairs
#: of operators on them. Chosen among 0.2, 0.34, 0.5 and 1 on seeds 100 to 104, which no benchmark uses: the
#: smallest with which a model of five blocks still has more of its path than the new node.
PATH_SHARE = 1 / 3


@dataclass
class TreeNode:
    """A node of the tree.

    visits, value  how many models its path was part of, and the sum of their rewards
    """

    block: Block | None = None
    parent: TreeNode | None = None
    depth: int = 0
    visits: int = 0
    value: float = 0.0
    children: list[TreeNode] = field(default_factory=list)

    def path(self) -> list[TreeNode]:
        """The nodes from the root's child to this one."""
        return [] if self.parent is None else [*self.parent.path(), self]


@dataclass(frozen=True)
class Choice:
    """The blocks of one model, and the tree node that gave them."""

    blocks: tuple[Block, ...]
    node: TreeNode | None = None


class Chooser(Protocol):
    """Chooses the blocks of one model after another."""

    def choose(self, count: int, rng: Rng) -> Choice:
        """The blocks of the next model."""
        ...

    def feed_back(self, choice: Choice, reward: float) -> None:
        """Learns what a model was worth, from 0 to 1; 0 for a model that was discarded."""
        ...


class RandomChooser:
    """Blocks drawn independently, all equally likely."""

    def __init__(self, corpus: BlockCorpus, coverage: OperatorLevelCoverage) -> None:
        del coverage
        self._blocks = list(corpus.blocks.values())

    def choose(self, count: int, rng: Rng) -> Choice:
        """The blocks of the next model."""
        return Choice(tuple(rng.choice(self._blocks) for _ in range(count)))

    def feed_back(self, choice: Choice, reward: float) -> None:
        """Learns nothing."""


class TreeChooser:
    """Monte-Carlo tree search with UCT.

    Each choice adds a node: from the root, the child of the largest potential v/n + e·√(ln N / n) is followed
    to a node with fewer than three children, whose new child is the operator of the lowest operator-level
    coverage that is not on the path yet, or a subgraph that contains it.

    The paper leaves open how a path becomes more or fewer blocks than it has nodes. Here a path gives its
    last blocks, a third of the model's at most, and the others are those of the largest expected gain.
    Discarded models count as visits without reward: else their node would be selected forever.
    """

    def __init__(self, corpus: BlockCorpus, coverage: OperatorLevelCoverage) -> None:
        self._corpus = corpus
        self._coverage = coverage
        self.root = TreeNode()

    def choose(self, count: int, rng: Rng) -> Choice:
        """The blocks of the next model."""
        leaf = self._select()
        path = [node.block for node in leaf.path() if node.block is not None]
        node = TreeNode(self._lowest(path, rng), leaf, leaf.depth + 1)
        leaf.children.append(node)
        kept = math.ceil(count * PATH_SHARE)
        blocks = [one.block for one in node.path() if one.block is not None][-kept:]
        gain = ExpectedGain(self._corpus, self._coverage, blocks, count)
        while len(blocks) < count:
            blocks.append(gain.best(rng))
            gain.add(blocks[-1])
        return Choice(tuple(blocks), node)

    def feed_back(self, choice: Choice, reward: float) -> None:
        """Adds a visit and the reward to the nodes from the choice's to the root."""
        node = choice.node
        while node is not None:
            node.visits += 1
            node.value += reward
            node = node.parent

    def _select(self) -> TreeNode:
        """The node to expand: on the path of the largest potential, among nodes that may still grow."""
        node = self.root
        while len(node.children) >= MAX_CHILDREN:
            growing = [child for child in node.children if _grows(child)]
            if not growing:
                return node  # all 3^10 paths are taken: the root gets a fourth child rather than none
            node = max(growing, key=potential)
        return node

    def _lowest(self, taken: Sequence[Block], rng: Rng) -> Block:
        """The operator of the lowest coverage that is in none of `taken`, or a subgraph that contains it.

        An operator that only subgraphs have counts until it occurs: its neighbors there are fixed, so its
        coverage stays low however often it is chosen.
        """
        coverage = self._coverage
        shares = {
            name: coverage.share(name)
            for name in coverage.operators
            if name in self._corpus.blocks or not coverage.occurs(name)
        }
        used = {name for block in taken for name in block.operators}
        free = {name: share for name, share in shares.items() if name not in used} or dict(shares)
        least = min(free.values())
        operator = rng.choice([name for name, share in free.items() if share == least])
        return rng.choice(self._corpus.containing[operator])


def potential(node: TreeNode) -> float:
    """UCT: v/n + e·√(ln N / n); infinite for a node that was never visited."""
    if not node.visits or node.parent is None:
        return math.inf
    return node.value / node.visits + EXPLORATION * math.sqrt(math.log(node.parent.visits) / node.visits)


def _grows(node: TreeNode) -> bool:
    if node.depth >= MAX_DEPTH:
        return False
    return len(node.children) < MAX_CHILDREN or any(map(_grows, node.children))


MakeChooser = Callable[[BlockCorpus, OperatorLevelCoverage], Chooser]
#: The choosers by name.
CHOOSERS: Mapping[str, MakeChooser] = MappingProxyType({"tree": TreeChooser, "random": RandomChooser})
