"""Operator-level coverage of graph search: tree against random search, and ablations, at the paper's setting.

`python -m tests.benchmarks graph-search [--seeds 5] [--inputs 400] [--out FOLDER]`

For 5, 10 and 15 blocks, 400 inputs and the paper's corpus of 53 blocks. The bars: the tree search covers more
than the random search in the mean of all seeds, and no less than the paper's figures; at least 99 % of models
pass ONNX's full check and run in its reference; the chooser takes at most 5 % of a campaign, of which making
the models is only a part. --out writes coverage.svg, the tree, and figures.json.
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
from fuzzing.generate.graph_search.choosers import TreeChooser, TreeNode
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
#: Name → settings, in the order of the paper's table.
VARIANTS: Mapping[str, Mapping[str, object]] = {
    "random": {"chooser": "random"},
    "tree, WS only, no mutation": {"kinds": ("watts-strogatz",), "mutations": False},
    "tree, RN only, no mutation": {"kinds": ("residual",), "mutations": False},
    "tree, no mutation": {"mutations": False},
    "tree": {},
}
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
    chooser: object


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
        for name, settings in VARIANTS.items():
            runs[name, blocks] = [
                _search(blocks, settings, seed, given.inputs) for seed in range(given.seeds)
            ]
            note(f"{blocks} blocks, {name}: OLC {_mean(runs[name, blocks]):.2%}")
    _print_table(runs)
    if given.out:
        _write_pictures(given.out, runs)
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
    return Run(search.coverage.of_set(), curve, seconds, search.choosing_s, checked, valid, search.chooser)


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
    print(f"{'variant':28} blocks  " + "  ".join(f"{name:>6}" for name in names) + "   chooser")
    for (variant, blocks), found in runs.items():
        shares = "  ".join(f"{_mean(found, name):6.1%}" for name in names)
        chooser = sum(run.choosing_s for run in found) / sum(run.seconds for run in found)
        print(f"{variant:28} {blocks:6}  {shares}   {chooser:7.1%}")


def _judge(runs: Mapping[tuple[str, int], Sequence[Run]]) -> int:
    broken = 0
    for blocks in BLOCKS:
        tree, random = _mean(runs["tree", blocks]), _mean(runs["random", blocks])
        broken += verdict(tree > random, f"{blocks} blocks: tree {tree:.2%} > random {random:.2%}")
        broken += verdict(
            tree >= PAPER_OLC[blocks], f"{blocks} blocks: {tree:.2%} >= {PAPER_OLC[blocks]:.1%}"
        )
    every = [run for found in runs.values() for run in found]
    valid, checked = sum(run.valid for run in every), sum(run.checked for run in every)
    broken += verdict(valid >= VALID * checked, f"{valid} of {checked} checked models are valid (99 %)")
    return int(broken > 0)


_COLORS = ("#888", "#d95f02", "#7570b3", "#e7298a", "#1b9e77")


def _write_pictures(folder: Path, runs: Mapping[tuple[str, int], Sequence[Run]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "coverage.svg").write_text(_curves(runs), encoding="utf-8")
    chooser = runs["tree", 5][0].chooser
    assert isinstance(chooser, TreeChooser)
    (folder / "tree.svg").write_text(_tree(chooser.root), encoding="utf-8")
    figures = {
        f"{name}/{blocks}": {"shares": [run.shares for run in found], "curve": [run.curve for run in found]}
        for (name, blocks), found in runs.items()
    }
    (folder / "figures.json").write_text(json.dumps(figures, indent=1), encoding="utf-8")


def _curves(runs: Mapping[tuple[str, int], Sequence[Run]]) -> str:
    """OLC over the number of models, a panel for each number of blocks, the mean of all seeds."""
    width, height, panels = 260, 200, []
    for panel, blocks in enumerate(BLOCKS):
        left = 45 + panel * (width + 45)
        lines = [f'<text x="{left}" y="15">{blocks} blocks</text>']
        for tick in range(0, 101, 20):
            y = 25 + height * (1 - tick / 100)
            lines.append(f'<path d="M{left} {y}h{width}" stroke="#ddd"/>')
            lines.append(f'<text x="{left - 5}" y="{y + 4}" text-anchor="end">{tick} %</text>')
        for name, color in zip(VARIANTS, _COLORS, strict=True):
            curves = [run.curve for run in runs[name, blocks]]
            means = [statistics.fmean(column) for column in zip(*curves, strict=True)]
            points = " ".join(
                f"{left + width * (place + 1) / len(means):.1f},{25 + height * (1 - mean):.1f}"
                for place, mean in enumerate(means)
            )
            lines.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="1.5"/>')
        panels.append("".join(lines))
    key = "".join(
        f'<text x="45" y="{260 + 16 * place}" fill="{color}">{name}</text>'
        for place, (name, color) in enumerate(zip(VARIANTS, _COLORS, strict=True))
    )
    return _svg(45 + 3 * (width + 45), 340, "".join(panels) + key)


def _tree(root: TreeNode) -> str:
    """The search tree: a circle for each node, darker where models were worth more."""
    levels: list[list[TreeNode]] = [[root]]
    while levels[-1]:
        levels.append([child for node in levels[-1] for child in node.children])
    places = {
        id(node): (900 * (place + 0.5) / len(level), 20 + 60 * depth)
        for depth, level in enumerate(levels)
        for place, node in enumerate(level)
    }
    lines, circles = [], []
    for level in levels:
        for node in level:
            x, y = places[id(node)]
            if node.parent is not None:
                above = places[id(node.parent)]
                lines.append(f'<path d="M{above[0]:.1f} {above[1]}L{x:.1f} {y}" stroke="#bbb"/>')
            worth = node.value / node.visits if node.visits else 0.0
            title = f"{node.block.name if node.block else 'root'}: {node.value:.2f} of {node.visits}"
            shade = f"hsl(160 60% {90 - 60 * worth:.0f}%)"
            circles.append(
                f'<circle cx="{x:.1f}" cy="{y}" r="3" fill="{shade}"><title>{title}</title></circle>'
            )
    return _svg(900, 40 + 60 * len(levels), "".join(lines + circles))


def _svg(width: int, height: int, body: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="12">{body}</svg>\n'
    )
