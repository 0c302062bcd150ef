"""Operator-level coverage of graph search: tree against random search, and ablations, at the paper's setting.

`python -m tests.benchmarks graph-search [--seeds 5] [--inputs 400] [--out FILE]`

For 5, 10 and 15 blocks, 400 inputs and the paper's corpus of 53 blocks. The bars: the tree search covers more
than the random search in the mean of all seeds, and no less than the paper's figures; at least 99 % of models
pass ONNX's full check and run in its reference; the chooser takes at most 5 % of a campaign, of which making
the models is only a part. --out writes all figures as JSON; `assay run --ablation --report` draws them.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx

from fuzzing.backends.onnx_reference import OnnxReference
from fuzzing.entry_point import note
from fuzzing.generate import case_builder
from fuzzing.generate.graph_search.blocks import PAPER
from fuzzing.generate.graph_search.record import VARIANTS
from fuzzing.generate.graph_search.rewards import coverage_gain
from fuzzing.generate.graph_search.search import Search, SearchSettings, SearchStep
from fuzzing.graph.onnx_writer import to_onnx
from fuzzing.graph.operator_spec import GraphLimits
from fuzzing.rng import derive_seed
from tests.benchmarks._common import machine, verdict

BLOCKS = (5, 10, 15)
#: OLC of tree search on both kinds of networks with mutations (paper, table of RQ2-4).
PAPER_OLC = {5: 0.615, 10: 0.764, 15: 0.817}
CHOOSING, VALID = 0.05, 0.99
#: Name → changed settings, in the order of the paper's table.
ALL: Mapping[str, Mapping[str, object]] = {**VARIANTS, "tree": {}}
#: Models between two points of the coverage curve, and between two that are checked.
_EVERY, _CHECKED = 20, 20


@dataclass
class Run:
    """One search: coverage in the end, and after every 20 models; seconds; checked and valid models."""

    shares: dict[str, float]
    curve: list[float]
    seconds: float
    choosing_s: float
    checked: int
    valid: int


def main(argv: Sequence[str]) -> int:
    """Runs all variants; 1 if a bar is not met."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--inputs", type=int, default=400)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args(argv)
    print(machine())
    runs: dict[tuple[str, int], list[Run]] = {}
    for blocks in BLOCKS:
        for name, settings in ALL.items():
            runs[name, blocks] = [
                _search(blocks, settings, seed, given.inputs) for seed in range(given.seeds)
            ]
            note(f"{blocks} blocks, {name}: OLC {_mean(runs[name, blocks]):.2%}")
    _print_table(runs)
    if given.out:
        given.out.write_text(json.dumps(_figures(runs), indent=1), encoding="utf-8")
    return _judge(runs)


def _search(blocks: int, settings: Mapping[str, object], seed: int, inputs: int) -> Run:
    made = SearchSettings((blocks, blocks), subgraphs=(PAPER,), **settings)  # type: ignore[arg-type]
    search = Search(made, 21, GraphLimits())
    curve, checked, valid, begin = [], 0, 0, time.perf_counter()
    elsewhere = 0.0
    for number in range(inputs):
        step = search.advance(derive_seed(seed, number))
        search.reward(step, coverage_gain(step))
        if number % _EVERY == _EVERY - 1:
            curve.append(search.coverage.of_set()["OLC"])
        if number % _CHECKED == 0:
            paused = time.perf_counter()
            checked, valid = checked + 1, valid + _is_valid(step, number)
            elsewhere += time.perf_counter() - paused
    seconds = time.perf_counter() - begin - elsewhere
    return Run(search.coverage.of_set(), curve, seconds, search.choosing_s, checked, valid)


def _is_valid(step: SearchStep, seed: int) -> bool:
    """Whether ONNX's checker accepts a model, and its reference computes it."""
    graph = step.model.generated.graph
    try:
        onnx.checker.check_model(to_onnx(graph), full_check=True)
        case = case_builder.build_case(step.model.generated, seed, case_builder.CaseOrigin("x", ""), "x")
        reference = OnnxReference()
        reference.load("CPU", {})
        values = tuple((name, one.draw() if hasattr(one, "draw") else one) for name, one in case.inputs)
        model = reference.convert(case.program, values)  # type: ignore[arg-type]
        reference.run(reference.compile(model), values)  # type: ignore[arg-type]
    except Exception as error:  # noqa: BLE001 - whatever the reference raises makes the model invalid
        note(f"not valid: {type(error).__name__}: {str(error)[:300]}")
        return False
    return True


def _mean(runs: Sequence[Run], name: str = "OLC") -> float:
    return statistics.fmean(run.shares[name] for run in runs)


def _print_table(runs: Mapping[tuple[str, int], Sequence[Run]]) -> None:
    names = ("OTC", "IDC", "ODC", "SEC", "SPC", "OLC")
    print(f"{'variant':33} blocks  " + "  ".join(f"{name:>6}" for name in names) + "   chooser")
    for (variant, blocks), found in runs.items():
        shares = "  ".join(f"{_mean(found, name):6.1%}" for name in names)
        chooser = sum(run.choosing_s for run in found) / sum(run.seconds for run in found)
        print(f"{variant:33} {blocks:6}  {shares}   {chooser:7.1%}")


def _judge(runs: Mapping[tuple[str, int], Sequence[Run]]) -> int:
    broken = 0
    for blocks in BLOCKS:
        tree, random = _mean(runs["tree", blocks]), _mean(runs["random search", blocks])
        broken += verdict(tree > random, f"{blocks} blocks: tree {tree:.2%} > random {random:.2%}")
        broken += verdict(
            tree >= PAPER_OLC[blocks], f"{blocks} blocks: {tree:.2%} >= {PAPER_OLC[blocks]:.1%}"
        )
    every = [run for found in runs.values() for run in found]
    valid, checked = sum(run.valid for run in every), sum(run.checked for run in every)
    broken += verdict(valid >= VALID * checked, f"{valid} of {checked} checked models are valid (99 %)")
    return int(broken > 0)


def _figures(runs: Mapping[tuple[str, int], Sequence[Run]]) -> dict[str, object]:
    return {
        f"{name}/{blocks}": {"shares": [run.shares for run in found], "curve": [run.curve for run in found]}
        for (name, blocks), found in runs.items()
    }
