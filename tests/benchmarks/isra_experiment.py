"""Isra's experiment repeated: eleven metrics of Isra, DeclGen, Randoop-like and NNSmith.

Metrics as in Isra's released code. NNSmith is compared with Isra**: Isra restricted to common operators,
dimensions up to 16, and the node counts of NNSmith's models; that table covers only these operators (Isra
paper).
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from onnx import ModelProto

from fuzzing.coverage import METRICS, OperatorSet, Tally, extract_scopes
from fuzzing.coverage import operators as operator_sets
from fuzzing.coverage.metrics import SHARE
from fuzzing.entry_point import note
from fuzzing.generate import generators
from fuzzing.generate.declgen import DeclGen
from fuzzing.generate.isra.settings import GeneratorSettings
from fuzzing.generate.nnsmith import VARIABLE, GenerationError, NNSmith
from fuzzing.generate.randoop import Randoop
from fuzzing.graph import operators
from fuzzing.graph.ir import Graph
from fuzzing.graph.onnx_writer import to_onnx
from fuzzing.graph.operator_spec import GraphLimits
from fuzzing.rng import derive_seed
from tests.benchmarks._common import machine

#: The default opset of onnx 1.12, which the release used.
OPSET = 17
NODES, ALIGNED = (1, 200), (16, 16)
#: Dimensions in the comparison with NNSmith (Isra paper).
ALIGNED_DIM = 16
_PROGRESS_S = 10.0


@dataclass
class Column:
    """One generator's figures.

    seconds  wall clock
    sizes    nodes of the operator set in each model
    """

    name: str
    tally: Tally
    seconds: float = 0.0
    sizes: list[int] = field(default_factory=list)

    def fill(self, models: Iterator[ModelProto]) -> None:
        """Adds models and their generation time."""
        reported = time.perf_counter()
        while True:
            begin = time.perf_counter()
            model = next(models, None)
            self.seconds += time.perf_counter() - begin
            if model is None:
                return
            self.sizes.append(self.tally.add(extract_scopes(model)).nodes)
            if begin - reported > _PROGRESS_S:
                reported = begin
                note(f"isra-experiment: {self.name}: {self.tally.models} models, {self.seconds:.0f} s")


def main(argv: Sequence[str]) -> int:
    """Prints the table in Markdown."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks isra-experiment")
    add = parser.add_argument
    add("--isra", type=int, default=1000, metavar="N", help="models")
    add("--declgen", type=int, default=1000, metavar="N")
    add("--randoop", type=int, default=200, metavar="N")
    add("--nnsmith", type=int, default=300, metavar="N")
    add("--nnsmith-python", default=os.environ.get(VARIABLE, ""), metavar="PATH", help="that has NNSmith")
    add("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    print(f"{machine()}; opset {OPSET}, seed {args.seed}")
    corpus = operator_sets.get("isra")
    settings = GeneratorSettings(nodes=NODES, opset=OPSET, operators=_specified(corpus.in_degrees))
    isra, declgen, randoop = generators.get("isra")(settings), DeclGen(settings), Randoop(settings)
    columns = [
        _column("Isra", corpus, _models(lambda seed: isra.generate(seed).graph, args.isra, args.seed)),
        _column(
            "Randoop", corpus, _models(lambda seed: randoop.generate(seed).graph, args.randoop, args.seed)
        ),
        _column(
            "DeclGen", corpus, _models(lambda seed: declgen.generate(seed).graph, args.declgen, args.seed)
        ),
    ]
    _print(columns)
    print(f"\nDeclGen drew {declgen.attempts:,} models, Randoop-like {randoop.attempts:,} nodes.\n")
    if args.nnsmith_python:
        _print(_against_nnsmith(args.nnsmith_python, args.nnsmith, args.seed))
    return 0


def _column(name: str, corpus: OperatorSet, models: Iterator[ModelProto]) -> Column:
    made = Column(name, Tally(corpus))
    made.fill(models)
    return made


def _against_nnsmith(python: str, count: int, seed: int) -> list[Column]:
    begin = time.perf_counter()
    models = list(_peers(python, count, seed))
    seconds = time.perf_counter() - begin
    met = {node.op_type for model in models for node in model.graph.node}
    every = operator_sets.get("isra").in_degrees
    corpus = OperatorSet("shared", {name: every[name] for name in _specified(met & set(every))})
    note(f"isra-experiment: {len(corpus.in_degrees)} operators are shared: {', '.join(corpus.in_degrees)}")
    theirs = _column("NNSmith", corpus, iter(models))
    theirs.seconds = seconds
    return [_column("Isra**", corpus, _aligned(theirs, seed)), theirs]


def _specified(wanted: Iterable[str]) -> tuple[str, ...]:
    known = operators.specifications(OPSET)
    return tuple(sorted(name for name in wanted if name in known))


def _models(make: Callable[[int], Graph], count: int, seed: int) -> Iterator[ModelProto]:
    return (to_onnx(make(derive_seed(seed, number))) for number in range(count))


def _peers(python: str, count: int, seed: int) -> Iterator[ModelProto]:
    peer = NNSmith(GeneratorSettings(nodes=ALIGNED), python)
    try:
        for number in range(count):
            try:
                yield ModelProto.FromString(peer.model(derive_seed(seed, "peer", number)).onnx)
            except GenerationError as error:
                note(f"isra-experiment: NNSmith made no model {number}: {error}")
    finally:
        peer.close()


def _aligned(theirs: Column, seed: int) -> Iterator[ModelProto]:
    """Isra's models with the node counts of NNSmith's."""
    shared = tuple(theirs.tally.operators.in_degrees)
    make = generators.get("isra")
    for number, nodes in enumerate(theirs.sizes):
        if nodes:
            limits = GraphLimits(max_dim=ALIGNED_DIM)
            settings = GeneratorSettings(nodes=(nodes, nodes), opset=OPSET, operators=shared, limits=limits)
            yield to_onnx(make(settings).generate(derive_seed(seed, number)).graph)


def _print(columns: Sequence[Column]) -> None:
    print("| | " + " | ".join(column.name for column in columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    print("| models | " + " | ".join(f"{column.tally.models:,}" for column in columns) + " |")
    print("| s, by the clock | " + " | ".join(f"{column.seconds:.1f}" for column in columns) + " |")
    for metric in METRICS:
        if (reading := metric.released) is None:
            continue
        values = [reading.value(column.tally) for column in columns]
        reported = [f"{value:.2%}" if reading.unit == SHARE else f"{value:,.2f}" for value in values]
        print(f"| {metric.abbreviation} | " + " | ".join(reported) + " |")
