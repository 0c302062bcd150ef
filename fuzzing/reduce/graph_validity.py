"""Checks that a candidate is a legal ONNX model (`fuzzing.graph.validity`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzzing.graph import validity
from fuzzing.reduce.graph_state import GraphState, constant_to_tensor
from fuzzing.reduce.input_values import as_tensor


def is_valid(state: GraphState) -> bool:
    """Whether a candidate breaks only rules that its original case breaks too."""
    return find_violations(state) <= state.tolerated


def find_violations(state: GraphState) -> frozenset[str]:
    """The rules that a candidate breaks."""
    graph = state.graph

    def value_of(edge: int) -> np.ndarray[Any, Any] | None:
        if edge in graph.constants:
            return constant_to_tensor(graph.constants[edge]).array()
        tensor = as_tensor(state.value(edge)) if edge in graph.inputs else None
        return None if tensor is None else tensor.array()

    return validity.find_violations(graph, value_of)
