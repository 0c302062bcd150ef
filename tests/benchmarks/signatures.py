"""Accuracy of triage strategies on planted faults in generated graphs.

For each fault of `signatures_data/planted.py` graphs of 5 to 20 operators are generated until enough fail.
Each failure is reduced, and the strategies group all failures of all causes. Prints the adjusted Rand index
and the share of pairs of one cause with the same label.

Failures are stored in `--keep DIR`, so an interrupted benchmark resumes.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import comb
from pathlib import Path
from typing import Any

from fuzzing.cases import Corpus, TestCase
from fuzzing.deduplicate.strategies.base import Failure, get_strategy, names
from fuzzing.entry_point import note
from fuzzing.execute.shard import Shard
from fuzzing.generate.case_builder import CaseOrigin, build_case
from fuzzing.generate.isra.settings import GeneratorSettings
from fuzzing.generate.isra.solver import Solver
from fuzzing.outcomes import Outcome
from fuzzing.reduce.engine import Budget
from fuzzing.reduce.reduced_case import reduced
from fuzzing.reduce.reduction import Reducer
from fuzzing.rng import derive_seed
from tests.benchmarks._common import machine, traits_from_json, traits_to_json, verdict

BACKEND = Path(__file__).parent / "signatures_data" / "planted.py"
ARI_BAR, PAIRS_BAR, LEAST_CAUSES = 0.95, 0.95, 30
#: Operators on which onnxruntime and ONNX's reference agree, mixed with those of the fault.
OPERATORS = (
    "Abs", "Add", "Concat", "Conv", "MatMul", "Max", "Mul", "Neg", "ReduceMean", "Relu", "Reshape", "Sigmoid",
    "Sin", "Slice",
)  # fmt: skip
_GRAPHS = 5000  # generated for a cause at most


@dataclass(frozen=True)
class KnownBug:
    """A failure with its cause, original and reduced."""

    cause: str
    found: Failure
    small: Failure


def adjusted_rand_index(one: Sequence[Hashable], other: Sequence[Hashable]) -> float:
    """Agreement of two partitions: 1 if equal, about 0 by chance.

    Hubert and Arabie, "Comparing partitions", 1985, equation 5.
    """
    pairs = sum(comb(n, 2) for n in Counter(zip(one, other, strict=True)).values())
    ones, others = (sum(comb(n, 2) for n in Counter(labels).values()) for labels in (one, other))
    total = comb(len(one), 2)
    if ones == others == pairs:
        return 1.0
    expected = ones * others / total
    return (pairs - expected) / ((ones + others) / 2 - expected)


def agreeing(causes: Sequence[Hashable], labels: Sequence[Hashable]) -> float:
    """The share of pairs of one cause with the same label."""
    pairs = sum(comb(n, 2) for n in Counter(causes).values())
    return sum(comb(n, 2) for n in Counter(zip(causes, labels, strict=True)).values()) / pairs


def planted() -> Any:
    """The module of the faults."""
    spec = importlib.util.spec_from_file_location("planted", BACKEND)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def candidates(fault: Any, name: str, seed: int) -> Iterator[TestCase]:
    """Generated cases that a fault affects."""
    operators = tuple(dict.fromkeys((*OPERATORS, *fault.operators)))
    solver = Solver(GeneratorSettings(nodes=(5, 20), opset=18, operators=operators))
    concerns = planted().concerns
    for number in range(_GRAPHS):
        own = derive_seed(seed, name, number)
        made = build_case(solver.generate(own), own, CaseOrigin("isra", "1"), str(number))
        if concerns(made.program.to_bytes(), fault):
            yield made


def failures(name: str, fault: Any, count: int, seed: int) -> Iterator[KnownBug]:
    """Reduced failures of a fault."""
    shard = Shard("", (), str(BACKEND), "planted", sys.executable, options={"fault": name})
    with Reducer(shard, Budget(400, 60.0)) as reducer:
        for made in candidates(fault, name, seed):
            if not count:
                return
            [outcome] = reducer.evaluate([made])
            if outcome.verdict.is_failure:
                small = reduced(reducer, made, outcome)
                count -= 1
                left = Failure(small.case, small.outcome, small.reduced, small.traits)
                yield KnownBug(name, Failure(made, outcome), left)


class Store:
    """Failures stored in a folder."""

    def __init__(self, folder: Path) -> None:
        self._corpus = Corpus(folder / "corpus")
        self._file = folder / "failures.jsonl"
        folder.mkdir(parents=True, exist_ok=True)

    def add(self, known: KnownBug) -> None:
        row: dict[str, Any] = {"cause": known.cause, "reduced": known.small.reduced}
        row["traits"] = traits_to_json(known.small.traits)
        for name, failure in (("found", known.found), ("small", known.small)):
            self._corpus.add(failure.case)
            row[name] = [failure.case.id, failure.outcome.to_json()]
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    def all(self) -> list[KnownBug]:
        if not self._file.exists():
            return []
        rows = map(json.loads, self._file.read_text(encoding="utf-8").splitlines())
        return [KnownBug(row["cause"], self._failure(row["found"]), self._small(row)) for row in rows]

    def _failure(self, reported: Any) -> Failure:
        return Failure(self._corpus.get(reported[0]), Outcome.from_json(reported[1]))

    def _small(self, row: Any) -> Failure:
        left, traits = self._failure(row["small"]), traits_from_json(row["traits"])
        return replace(left, reduced=row["reduced"], traits=traits)


def collect(store: Store, count: int, seed: int) -> list[KnownBug]:
    """All failures: stored ones, and new ones for causes without any."""
    done = {item.cause for item in store.all()}
    faults = planted().FAULTS
    for place, (name, fault) in enumerate(faults.items(), 1):
        if name in done:
            continue
        begin = time.monotonic()
        found = list(failures(name, fault, count, seed))
        for item in found:
            store.add(item)
        note(f"{place} of {len(faults)}: {name}: {len(found)} failures, {time.monotonic() - begin:.0f} s")
    return store.all()


def confused(known: Sequence[KnownBug], labels: Sequence[str]) -> Iterator[str]:
    """Causes with several labels, and labels with several causes."""
    by_cause: dict[str, Counter[str]] = {}
    by_label: dict[str, set[str]] = {}
    shown: dict[str, str] = {}
    for item, label in zip(known, labels, strict=True):
        by_cause.setdefault(item.cause, Counter())[label] += 1
        by_label.setdefault(label, set()).add(item.cause)
        fields = item.small.signature().fields
        shown.setdefault(label, f"{fields['operator']} {', '.join(fields.get('needs', ()))}")
    for cause, counts in by_cause.items():
        if len(counts) > 1:
            parts = "; ".join(f"{n} × {shown[label]}" for label, n in counts.most_common())
            yield f"split   {cause}: {parts}"
    for causes in by_label.values():
        if len(causes) > 1:
            yield f"merged  {', '.join(sorted(causes))}"


def main(argv: Sequence[str]) -> int:
    """The benchmark's exit code."""
    parser = argparse.ArgumentParser(description="How well failures are told apart.")
    parser.add_argument("--keep", type=Path, required=True, help="folder for failures")
    parser.add_argument("--count", type=int, default=10, help="failures for each cause")
    parser.add_argument("--seed", type=int, default=7, help="from which graphs are generated")
    given = parser.parse_args(argv)
    print(machine())
    found, cause = collect(Store(given.keep), given.count, given.seed), planted().cause
    known = [replace(item, cause=cause(item.cause)) for item in found]
    causes = [item.cause for item in known]
    reduced = sum(item.small.reduced for item in known)
    roots = sum(item.small.traits is not None and item.small.traits.root is not None for item in known)
    print(
        f"{len(known)} failures of {len(set(causes))} causes, {reduced} of them reduced, {roots} have a root"
    )
    print(f"{'strategy':12} {'as found':>22}   {'as reduced':>22}   {'one label':>9}")
    for name in names():
        columns = []
        for group in ([item.found for item in known], [item.small for item in known]):
            labels = get_strategy(name)(group)
            ari, pairs = adjusted_rand_index(causes, labels), agreeing(causes, labels)
            columns.append(f"ARI {ari:5.3f} pairs {pairs:6.1%}")
        whole = sum(
            n == 1 for n in Counter(cause for cause, _ in set(zip(causes, labels, strict=True))).values()
        )
        print(f"{name:12} {columns[0]:>22}   {columns[1]:>22}   {whole:3} of {len(set(causes))}")
    labels = get_strategy("signature")([item.small for item in known])
    print(*confused(known, labels), sep="\n")
    ari, pairs = adjusted_rand_index(causes, labels), agreeing(causes, labels)
    enough = len(known) >= 300 and len(set(causes)) >= LEAST_CAUSES
    kept = enough and ari >= ARI_BAR and pairs >= PAIRS_BAR
    bar = f"ARI at least {ARI_BAR}, pairs at least {PAIRS_BAR:.0%}"
    return verdict(kept, f"{bar}, on ≥ 300 failures of ≥ {LEAST_CAUSES} causes")
