"""The rules of ONNX that a case's model breaks with the case's inputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzzing.cases import OnnxModel, Recipe, Tensor, TestCase
from fuzzing.errors import UsageError
from fuzzing.graph.onnx_reader import from_onnx
from fuzzing.graph.validity import find_violations


def find_case_violations(case: TestCase) -> frozenset[str]:
    """The rules, as from `fuzzing.graph.validity`; none if the model cannot be read as a graph."""
    assert isinstance(case.program, OnnxModel)
    try:
        graph = from_onnx(case.program.model)
        given = dict(case.inputs)

        def value_of(edge: int) -> np.ndarray[Any, Any] | None:
            if edge in graph.constants:
                return np.asarray(graph.constants[edge].array)
            value = given.get(graph.names.get(edge, f"v{edge}"))
            if isinstance(value, Recipe):
                value = value.draw()
            return value.array() if isinstance(value, Tensor) else None

        return find_violations(graph, value_of)
    except UsageError:
        return frozenset()
