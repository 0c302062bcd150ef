"""The corpus of blocks: operators and subgraphs of them, read from the files in `corpus`."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

from fuzzing.coverage.operator_level import OUT_DEGREES, DegreeBounds
from fuzzing.errors import InternalError

#: The folders of subgraphs: the paper's three, and patterns that today's compilers fuse.
PAPER, FUSION = "paper", "fusion"


@dataclass(frozen=True)
class BlockOperator:
    """An operator of the corpus and how ONNX's operators compute it; see `corpus/operators.toml`.

    onnx        ONNX operators, one after another
    in_degrees  how many data inputs it may take
    arity       how many inputs the first ONNX operator is given; None: any that it takes
    rank        of its data; None: any that it takes
    attributes  name → the values it may have
    constants   position → the number of a scalar input
    same        whether the data input is given twice
    weights     "channels" if its constant input holds one number for each channel
    """

    name: str
    onnx: tuple[str, ...]
    in_degrees: frozenset[int] = frozenset({1})
    arity: int | None = None
    rank: int | None = None
    attributes: Mapping[str, tuple[Any, ...]] = field(default_factory=dict, hash=False)
    constants: Mapping[int, float] = field(default_factory=dict, hash=False)
    same: bool = False
    weights: str = ""


@dataclass(frozen=True)
class Block:
    """A node of the network: an operator, or a subgraph of several.

    operators  names of operators of the corpus
    edges      inner edges, pairs of indices of `operators`, the smaller one first; a pair may occur twice
    """

    name: str
    operators: tuple[str, ...]
    edges: tuple[tuple[int, int], ...] = ()

    def inner_degrees(self) -> list[int]:
        """How many inner edges lead to each operator."""
        counts = Counter(other for _, other in self.edges)
        return [counts[place] for place in range(len(self.operators))]


@dataclass(frozen=True)
class BlockCorpus:
    """The operators and the blocks of a search.

    operators  by name
    blocks     by name: each operator as a block of its own, then the subgraphs
    """

    operators: Mapping[str, BlockOperator]
    blocks: Mapping[str, Block]

    def in_degrees(self, block: Block) -> frozenset[int]:
        """How many data inputs a block may take: those of its operators that no inner edge feeds."""
        if len(block.operators) == 1:
            return self.operators[block.operators[0]].in_degrees
        given = block.inner_degrees()
        missing = (
            max(0, min(self.operators[name].in_degrees) - degree)
            for name, degree in zip(block.operators, given, strict=True)
        )
        return frozenset({sum(missing)})

    def degree_bounds(self) -> dict[str, DegreeBounds]:
        """What coverage is measured against."""
        return {name: DegreeBounds(one.in_degrees, OUT_DEGREES) for name, one in self.operators.items()}

    @cached_property
    def containing(self) -> Mapping[str, Sequence[Block]]:
        """Each operator's own block and the subgraphs that contain it."""
        return {
            name: [block for block in self.blocks.values() if name in block.operators]
            for name in self.operators
        }

    def restricted_to(self, operators: Collection[str]) -> BlockCorpus:
        """The corpus of the blocks that only need these ONNX operators."""
        kept = {name: one for name, one in self.operators.items() if set(one.onnx) <= set(operators)}
        blocks = {name: block for name, block in self.blocks.items() if set(block.operators) <= set(kept)}
        return BlockCorpus(kept, blocks)


@cache
def load_corpus(*folders: str) -> BlockCorpus:
    """The 50 operators of the paper, and the subgraphs in these folders, with further operators they use."""
    operators = _read_operators("operators.toml")
    subgraphs = [block for folder in folders for block in _read_subgraphs(folder)]
    further = _read_operators("further_operators.toml")
    used = {name for block in subgraphs for name in block.operators}
    operators |= {name: one for name, one in further.items() if name in used}
    unknown = used - operators.keys()
    if unknown:
        raise InternalError(f"subgraphs use operators that no file of the corpus has: {sorted(unknown)}")
    blocks = {name: Block(name, (name,)) for name in operators if name not in further}
    return BlockCorpus(operators, blocks | {block.name: block for block in subgraphs})


def _corpus_file(*path: str) -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("corpus", *path).read_text(encoding="utf-8"))


def _read_operators(name: str) -> dict[str, BlockOperator]:
    return {
        operator: BlockOperator(
            operator,
            tuple(entry["onnx"]),
            frozenset(entry.get("in_degrees", [1])),
            entry.get("arity"),
            entry.get("rank"),
            {key: tuple(values) for key, values in entry.get("attributes", {}).items()},
            {int(place): number for place, number in entry.get("constants", {}).items()},
            entry.get("same", False),
            entry.get("weights", ""),
        )
        for operator, entry in _corpus_file(name).items()
    }


def _read_subgraphs(folder: str) -> list[Block]:
    root = files(__package__).joinpath("corpus", folder)
    names = sorted(entry.name for entry in root.iterdir() if entry.name.endswith(".toml"))
    entries = [(name.removesuffix(".toml"), _corpus_file(folder, name)) for name in names]
    return [
        Block(name, tuple(one["operators"]), tuple((first, second) for first, second in one["edges"]))
        for name, one in entries
    ]
