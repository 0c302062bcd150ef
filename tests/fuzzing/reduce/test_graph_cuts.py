"""Nodes of several outputs are bypassed only where nothing uses the others."""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from fuzzing.reduce.engine import CLEAN, SAME, reduce
from fuzzing.reduce.graphs import SPEC, GraphState
from tests.fuzzing.reduce.test_graphs import onnx_case, state_of


def test_a_split_whose_second_half_is_used_is_not_bypassed() -> None:
    graph = "(float[4] x) => (float[4] y) <int64[1] k = {4}> { a, i = TopK(x, k) y = Gather(a, i) }"
    start = state_of(onnx_case(graph, x=(4,)))

    def classify(candidates: Sequence[GraphState]) -> list[str]:
        for candidate in candidates:
            onnx.checker.check_model(candidate.case().program.to_bytes(), full_check=True)
        return [SAME if holds(candidate) else CLEAN for candidate in candidates]

    def holds(candidate: GraphState) -> bool:
        return {node.op for node in candidate.graph.nodes} == {"TopK", "Gather"}

    best = reduce(start, SPEC, classify).best
    assert [node.op for node in best.graph.nodes] == ["TopK", "Gather"]
