"""The record of a search, as JSON for the report: its tree, its coverage curve, and its ablation.

{"models": N,
 "curve": [OLC after each model, …],
 "tree": [[number of the parent, block, visits, value], …],     the root first, whose parent is -1
 "ablation": {VARIANT: [OLC after each model, …], …}}           empty if none was run
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from fuzzing.generate.graph_search.choosers import TreeChooser, TreeNode
from fuzzing.generate.graph_search.rewards import coverage_gain
from fuzzing.generate.graph_search.search import Search, SearchSettings
from fuzzing.graph.operator_spec import GraphLimits

#: The searches of the paper's table with less of the method, by name: changed settings.
VARIANTS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "random search": {"chooser": "random"},
        "Watts-Strogatz only, no mutation": {"kinds": ("watts-strogatz",), "mutations": False},
        "residual only, no mutation": {"kinds": ("residual",), "mutations": False},
        "no mutation": {"mutations": False},
    }
)
_DIGITS = 4


def run_ablation(settings: SearchSettings, opset: int, seeds: Sequence[int]) -> dict[str, list[float]]:
    """The coverage curve of each variant of a search, for the same seeds; models are made, not run."""
    found: dict[str, list[float]] = {}
    for name, changes in VARIANTS.items():
        search = Search(replace(settings, **changes), opset, GraphLimits())
        found[name] = []
        for seed in seeds:
            step = search.advance(seed)
            search.reward(step, coverage_gain(step))
            found[name].append(search.coverage.of_set()["OLC"])
    return found


def to_json(
    search: Search, curve: Sequence[float], ablation: Mapping[str, Sequence[float]]
) -> dict[str, Any]:
    """The record of a search with its curve, and the curves of its variants."""
    chooser = search.chooser
    return {
        "models": len(curve),
        "curve": _round(curve),
        "tree": _tree(chooser.root) if isinstance(chooser, TreeChooser) else [],
        "ablation": {name: _round(one) for name, one in ablation.items()},
    }


def _round(curve: Sequence[float]) -> list[float]:
    return [round(share, _DIGITS) for share in curve]


def _tree(root: TreeNode) -> list[list[Any]]:
    """The nodes, each after its parent."""
    found: list[list[Any]] = []
    waiting = [(-1, root)]
    while waiting:
        parent, node = waiting.pop()
        name = node.block.name if node.block is not None else ""
        waiting += [(len(found), child) for child in reversed(node.children)]
        found.append([parent, name, node.visits, round(node.value, _DIGITS)])
    return found
