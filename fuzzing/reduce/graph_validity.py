"""Checks that a candidate is a legal ONNX model (`fuzzing.graph.validity`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fuzzing.cases import Tensor, Value
from fuzzing.graph import validity
from fuzzing.reduce.graph_state import GraphState, constant_to_tensor
from fuzzing.reduce.input_values import as_tensor


def is_valid(state: GraphState) -> bool:
    """Whether a candidate breaks only rules that its original case breaks too."""
    return find_violations(state) <= state.tolerated


def declares(state: GraphState, outputs: Sequence[tuple[str, Value]]) -> bool:
    """Whether a candidate declares the shapes that the library computes.

    They disagree where the shape depends on elements that ONNX's inference does not follow: a reduced graph
    keeps the shape of the original one there.
    """
    types = {f"v{edge}": state.graph.types[edge] for edge in state.graph.outputs}
    return all(
        _fits(types[name].shape, value.shape)
        for name, value in outputs
        if isinstance(value, Tensor) and name in types
    )


def _fits(declared: Sequence[int | None] | None, shape: Sequence[int]) -> bool:
    if declared is None:
        return True
    pairs = zip(declared, shape, strict=False)
    return len(declared) == len(shape) and all(one in (None, other) for one, other in pairs)


def find_violations(state: GraphState) -> frozenset[str]:
    """The rules that a candidate breaks."""
    graph = state.graph

    def value_of(edge: int) -> np.ndarray[Any, Any] | None:
        if edge in graph.constants:
            return constant_to_tensor(graph.constants[edge]).array()
        tensor = as_tensor(state.value(edge)) if edge in graph.inputs else None
        return None if tensor is None else tensor.array()

    return validity.find_violations(graph, value_of)
