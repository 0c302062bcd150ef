"""Checks ONNX's evaluator and the oracle against unoptimized onnxruntime, by operator.

`python -m tests.sweeps.oracle [--opset 18] [--dtypes float32] [--count 8] [--operators A,B] [--seed 5]`

makes single-node models from the specification of every operator and runs them in ONNX's evaluator and in
onnxruntime without optimization. Prints the verdicts of each operator, the first of each kind of failure with
its index, and the share of models with a verdict.

`--keep DIR` writes the failing models into a corpus.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import onnx

from fuzzing.cases import TestCase
from fuzzing.cases.corpus import Corpus
from fuzzing.errors import UsageError
from fuzzing.execute.evaluator import Evaluator
from fuzzing.execute.limits import Limits
from fuzzing.execute.shard import Shard
from fuzzing.generate import case_builder
from fuzzing.generate.isra import GeneratorSettings, Solver
from fuzzing.graph import operators
from fuzzing.outcomes import Outcome, Verdict
from fuzzing.rng import derive_seed

_NUMBERS = re.compile(r"[-\d.\[\], ]+")
#: Low, so that most inputs are initializers and edges are rarely repeated.
_PICKING_RATE = 0.3
#: Minimum share of models with a verdict.
_ENOUGH = 0.995
_ORIGIN = case_builder.CaseOrigin("judge", onnx.__version__)


@dataclass
class Tally:
    """Results of one operator."""

    verdicts: Counter[str] = field(default_factory=Counter)
    first: dict[tuple[str, str], str] = field(default_factory=dict)

    def add(self, index: int, outcome: Outcome) -> None:
        """Counts an outcome, and keeps the first of each kind that did not pass."""
        self.verdicts[outcome.verdict.value] += 1
        if outcome.verdict is not Verdict.PASS:
            reported = _told(outcome)
            self.first.setdefault(
                (outcome.verdict.value, _NUMBERS.sub("", reported)[:40]), f"#{index} {reported}"
            )


def _told(outcome: Outcome) -> str:
    return " ".join((outcome.summary or outcome.evidence.message).split())[:300]


def cases(name: str, opset: int, dtypes: tuple[str, ...], seed: int, count: int) -> Iterator[TestCase]:
    """The models of one operator; none if it supports none of the types."""
    try:
        solver = Solver(
            GeneratorSettings(
                nodes=(1, 1), opset=opset, operators=(name,), dtypes=dtypes, picking_rate=_PICKING_RATE
            )
        )
    except UsageError:
        return
    for index in range(count):
        one = derive_seed(seed, name, opset, index)
        yield case_builder.build_case(solver.generate(one), one, _ORIGIN, f"{name}-{opset}-{index}")


def sweep(
    evaluator: Evaluator,
    names: Sequence[str],
    opset: int,
    dtypes: tuple[str, ...],
    seed: int,
    count: int,
    keep: Corpus | None,
) -> Counter[str]:
    """Checks the models of these operators and prints the results; returns the total."""
    total: Counter[str] = Counter()
    for place, name in enumerate(names):
        tally = Tally()
        made = list(cases(name, opset, dtypes, seed, count))
        for index, (case, outcome) in enumerate(zip(made, evaluator.evaluate(made), strict=True)):
            tally.add(index, outcome)
            if keep is not None and outcome.verdict is not Verdict.PASS:
                keep.add(case)
        total += tally.verdicts
        print(f"{place + 1}/{len(names)} {name}", file=sys.stderr, flush=True)
        counts = " ".join(f"{verdict}={number}" for verdict, number in sorted(tally.verdicts.items()))
        print(f"{name} @{opset} {','.join(dtypes)}: {counts}", flush=True)
        for (verdict, _), reported in tally.first.items():
            print(f"    {verdict} {reported}", flush=True)
    return total


def main() -> int:
    """Runs the sweep; exit code 1 if fewer than 99.5 % of the models have a verdict."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--opset", type=int, default=18)
    parser.add_argument("--dtypes", default="float32")
    parser.add_argument("--count", type=int, default=8)
    parser.add_argument("--operators", default="")
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    names = given.operators.split(",") if given.operators else list(operators.specifications(given.opset))
    shard = Shard(
        "", (), "onnxruntime", "sweep", sys.executable, options={"optimization": "disabled"},
        limits=Limits(run_s=30.0),
    )  # fmt: skip
    keep = Corpus(given.keep) if given.keep else None
    with Evaluator(shard) as evaluator:
        total = sweep(
            evaluator, names, given.opset, tuple(given.dtypes.split(",")), given.seed, given.count, keep
        )
    classified = total.total() - total[Verdict.INVALID.value]
    print(f"total: {dict(sorted(total.items()))}; judged {classified}/{total.total()}")
    return int(classified < _ENOUGH * total.total())


if __name__ == "__main__":
    sys.exit(main())
