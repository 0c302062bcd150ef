"""Rewards of graph search at equal time: models, failures and parts of the compiler that each reaches.

`python -m tests.benchmarks graph-search-rewards [--backend B] [--seconds 20] [--blocks 5] [--seeds 3]`

Time is CPU time of the search and of all processes of the compiler and the reference, so that other work on
the machine favors no reward. Each search runs its models on the compiler while it searches, the reward
`coverage` too, which does not look at the outcomes. Parts are lines of the compiler's Python code and passes
that changed a model; the models run again to count them, after the time is over. Kinds of failures are
statuses with normalized messages.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from fuzzing.cases import TestCase
from fuzzing.compiler_messages import normalize_message
from fuzzing.entry_point import note
from fuzzing.execute.evaluator import Evaluator
from fuzzing.execute.shard import Shard
from fuzzing.generate.case_builder import CaseOrigin, build_case
from fuzzing.generate.graph_search import rewards
from fuzzing.generate.graph_search.rewards import ModelRun, coverage_gain, status
from fuzzing.generate.graph_search.rewards.compiler_coverage import Part, compiler_parts
from fuzzing.generate.graph_search.search import Search, SearchSettings
from fuzzing.graph.operator_spec import GraphLimits
from fuzzing.rng import derive_seed
from tests.benchmarks._common import machine
from tests.benchmarks._cpu_time import used_by_tree

#: Models that run again together.
_BATCH = 20


@dataclass
class Campaign:
    """What a search under one reward did in its time."""

    models: int
    olc: float
    failures: int
    kinds: int
    parts: int


def main(argv: Sequence[str]) -> int:
    """Prints the table; there is no bar."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--backend", default="openvino")
    parser.add_argument("--seconds", type=float, default=20.0, help="CPU time of each search")
    parser.add_argument("--blocks", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args(argv)
    print(machine())
    names = rewards.names()
    found: dict[str, list[Campaign]] = {name: [] for name in names}
    for seed in range(given.seeds):
        for name in names:
            with Evaluator(Shard("", (), given.backend, "", sys.executable)) as evaluator:
                found[name].append(_search(name, evaluator, given.blocks, given.seconds, seed))
    print(
        f"{given.backend}, {given.blocks} blocks, {given.seconds:g} s of CPU, medians of {given.seeds} seeds "
        "(least to most parts)"
    )
    print(f"{'reward':18} {'models':>7} {'OLC':>7} {'failures':>9} {'kinds':>6}  parts")
    for name in names:
        print(_describe(name, found[name]))
    return 0


def _describe(name: str, found: Sequence[Campaign]) -> str:
    middle = {key: statistics.median(getattr(one, key) for one in found) for key in vars(found[0])}
    parts = [one.parts for one in found]
    return (
        f"{name:18} {middle['models']:7.0f} {middle['olc']:7.2%} {middle['failures']:9.0f} "
        f"{middle['kinds']:6.0f}  {middle['parts']:.0f} ({min(parts)} to {max(parts)})"
    )


def _search(reward: str, evaluator: Evaluator, blocks: int, seconds: float, seed: int) -> Campaign:
    search = Search(SearchSettings((blocks, blocks)), 21, GraphLimits())
    scores = rewards.get(reward)() if reward != rewards.COVERAGE else None
    instrumentation = dict(scores.instrumentation) if scores else {}
    cases: list[TestCase] = []
    failures, kinds, end = 0, set(), used_by_tree() + seconds
    while used_by_tree() < end:
        own = derive_seed(seed, len(cases))
        step = search.advance(own)
        case = build_case(step.model.generated, own, CaseOrigin("benchmark", ""), str(len(cases)))
        cases.append(case)
        [run] = evaluator.instrumented([case], instrumentation)
        search.reward(step, scores(step, ModelRun(*run)) if scores else coverage_gain(step))
        outcome = run[0]
        if outcome.verdict.is_failure:
            failures += 1
            kinds.add((status(outcome), normalize_message(outcome.summary)))
    olc = search.coverage.of_set()["OLC"]
    campaign = Campaign(len(cases), olc, failures, len(kinds), len(_parts(evaluator, cases)))
    note(f"{reward}, seed {seed}: {campaign}")
    return campaign


def _parts(evaluator: Evaluator, cases: Sequence[TestCase]) -> set[Part]:
    found: set[Part] = set()
    for first in range(0, len(cases), _BATCH):
        for _, notes in evaluator.instrumented(cases[first : first + _BATCH], {"coverage": True}):
            found |= compiler_parts(notes)
    return found
