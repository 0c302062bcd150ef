"""Splitting on real bugs: rows of `docs/findings.md` in other element types.

    python -m tests.benchmarks signatures-types COMPILER [--rows N] [--seed N]

Each row is made again in other types of a kind, and in integers for floats, where that is legal. What fails
in the same way is reduced, as a campaign does, and grouped by `signature`. Rows with several labels are
printed: each is one bug that is reported several times, unless a type has a bug of its own.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from fuzzing.cases import OnnxModel, Tensor, TestCase
from fuzzing.cases.plain_types import cast_tensor, plainest_type
from fuzzing.deduplicate.strategies.base import DEFAULT, Failure, get_strategy
from fuzzing.entry_point import note
from fuzzing.errors import UsageError
from fuzzing.execute.shard import Shard
from fuzzing.graph import Graph
from fuzzing.graph.onnx_reader import from_onnx
from fuzzing.graph.onnx_writer import to_bytes
from fuzzing.graph.transformations import retype
from fuzzing.graph.type_replacement import replace_types
from fuzzing.outcomes import Outcome
from fuzzing.reduce.engine import Budget
from fuzzing.reduce.reduction import Reducer
from fuzzing.reduce.symptom_check import has_symptom, symptom_of
from tests.benchmarks._common import verdict
from tests.benchmarks._findings_corpus import TITLES, read_cases

#: The types of each kind that ONNX's operators accept most often, and int32 for numbers of any type.
_TYPES = {
    "float32": ("float64", "float16", "bfloat16", "int32"),
    "int64": ("int32", "int8", "uint8", "uint16"),
}
_FLOAT8 = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
#: The issue's bar: bugs with several labels.
_SPLIT_BAR = 0.05
_BUDGET = Budget(runs=400, seconds=60)


def variants(case: TestCase) -> Iterator[TestCase]:
    """The case in other element types, where that is a legal model."""
    assert isinstance(case.program, OnnxModel)
    graph = from_onnx(case.program.model)
    for dtype in sorted({type_.dtype for type_ in graph.types}):
        others = _FLOAT8 if dtype in _FLOAT8 else _TYPES.get(plainest_type(dtype), ())
        for other in others:
            if other != dtype and (found := _in_type(case, graph, dtype, other)) is not None:
                yield found


def _in_type(case: TestCase, graph: Graph, dtype: str, other: str) -> TestCase | None:
    try:
        typed = retype(replace_types(graph, {dtype: other}))
    except UsageError:
        return None
    inputs = []
    for name, value in case.inputs:
        changed = value
        if isinstance(value, Tensor) and value.dtype == dtype:
            changed = cast_tensor(value, other) or value
        inputs.append((name, changed))
    origin = replace(case.provenance, test=f"{case.provenance.test} in {other}")
    return replace(case, program=OnnxModel(to_bytes(typed)), inputs=tuple(inputs), provenance=origin)


def reduced_failures(reducer: Reducer, row: TestCase) -> list[Failure]:
    """The row in all types in which it fails in the same way, reduced; none if the row does not fail."""
    cases = [row, *variants(row)]
    outcomes = reducer.evaluate(cases)
    if not outcomes[0].verdict.is_failure:
        return []
    wanted = symptom_of(outcomes[0])
    failing = [pair for pair in zip(cases, outcomes, strict=True) if has_symptom(pair[1], wanted)]
    return [failure for case, outcome in failing for failure in _reduced(reducer, case, outcome)]


def _reduced(reducer: Reducer, case: TestCase, outcome: Outcome) -> Iterator[Failure]:
    try:
        reduction = reducer.reduce(case, outcome, budget=_BUDGET)
    except UsageError as error:
        note(f"{case.provenance.test}: {error}")
        return
    small, shown = reduction.root or (reduction.case, reduction.outcome)
    yield Failure(small, shown, reduced=True, traits=reduction.traits)


def main(argv: Sequence[str]) -> int:
    """The benchmark's exit code."""
    parser = argparse.ArgumentParser(description="Which findings several signatures split by element types.")
    parser.add_argument(
        "compiler", choices=sorted(TITLES), metavar="COMPILER", help=f"of {', '.join(TITLES)}"
    )
    parser.add_argument("--rows", type=int, default=20, help="rows, drawn by --seed (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    given = parser.parse_args(argv)
    rows = list({case.id: case for case in read_cases(given.compiler)}.values())
    random.Random(given.seed).shuffle(rows)
    bugs = failures = split = 0
    with Reducer(Shard("", (), given.compiler, "installed", sys.executable), forked=True) as reducer:
        for row in rows[: given.rows]:
            found = reduced_failures(reducer, row)
            if len(found) < 2:
                continue  # it fails in no other type
            labels = get_strategy(DEFAULT)(found)
            counts = Counter(labels)
            bugs, failures, split = bugs + 1, failures + len(found), split + (len(counts) > 1)
            note(f"{row.provenance.test}: {len(found)} failures, {len(counts)} signatures")
            for label, count in counts.items() if len(counts) > 1 else ():
                first = found[labels.index(label)]
                print(f"{count} × {first.signature().title} ({first.case.provenance.original_test()})")
    return verdict(
        split <= _SPLIT_BAR * bugs, f"{split} of {bugs} bugs, of {failures} failures, have several signatures"
    )
