"""Checks the bounds of specifications against every edge of executed graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fuzzing.generate.generators import GeneratedGraph
from fuzzing.generate.isra.settings import GeneratorSettings
from fuzzing.generate.isra.solver import Solver
from fuzzing.graph import intervals
from fuzzing.graph.intervals import Interval
from fuzzing.rng import Rng, derive_seed
from tests.support.operators import run

_usual = intervals.draw_interval


def anything(rng: Rng, allowed: Interval, dtype: str) -> Interval:
    """Replaces `intervals.draw_interval`: mostly the full range that the operators allow."""
    return allowed if dtype != "bool" and rng.chance(0.7) else _usual(rng, allowed, dtype)


def check_bounds(
    names: Sequence[str], dtype: str, models: int, nodes: int, opset: int = 21, label: str = ""
) -> int:
    """Runs graphs of these operators with all edges as outputs; returns the number of checked edges.

    Every element must be finite and within its edge's bounds, to the last bit: they include rounding.
    """
    settings = GeneratorSettings(nodes=(nodes, nodes), opset=opset, operators=tuple(names), dtypes=(dtype,))
    solver, seen = Solver(settings), 0
    for number in range(models):
        seed = derive_seed(number, "bounds", dtype, label)
        generated = solver.generate(seed)
        graph = generated.graph
        edges = tuple(edge for node in graph.nodes for edge in node.outputs)
        outputs = run(GeneratedGraph(replace(graph, outputs=edges), generated.ranges), seed).outputs
        producers = graph.producers()
        for edge, array in zip(edges, outputs or (), strict=outputs is not None):
            low, high = generated.ranges[edge]
            found = array.astype(np.float64)
            inside = np.isfinite(found) & (found >= low) & (found <= high)
            feeds = [generated.ranges.get(feed) for feed in producers[edge].used_edges()]
            assert inside.all(), (seed, producers[edge], graph.types[edge], (low, high), found, feeds)
            seen += 1
    return seen
