"""The rules of ONNX that a case's model breaks with the case's inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from fuzzing.cases import OnnxModel, Recipe, Tensor, TestCase
from fuzzing.errors import UsageError
from fuzzing.graph.ir import Graph
from fuzzing.graph.onnx_reader import from_onnx
from fuzzing.graph.validity import find_broken_operands, find_violations

Array = np.ndarray[Any, Any]
_NOTHING: Mapping[str, Array] = MappingProxyType({})


def find_case_violations(case: TestCase, computed: Mapping[str, Array] = _NOTHING) -> frozenset[str]:
    """The rules, as from `fuzzing.graph.validity`; none if the model cannot be read as a graph.

    computed  tensors that the model computes, by name; then only rules about operands are asked, with these
    """
    assert isinstance(case.program, OnnxModel)
    try:
        graph = from_onnx(case.program.model)
        given = {**computed, **dict(case.inputs)}

        def value_of(edge: int) -> np.ndarray[Any, Any] | None:
            if edge in graph.constants:
                return np.asarray(graph.constants[edge].array)
            value = given.get(graph.names.get(edge, f"v{edge}"))
            if isinstance(value, Recipe):
                value = value.draw()
            if isinstance(value, Tensor):
                return value.array()
            return value if isinstance(value, np.ndarray) else None

        if computed:
            return find_broken_operands(_with_shapes(graph, computed), value_of)
        return find_violations(graph, value_of)
    except UsageError:
        return frozenset()


def _with_shapes(graph: Graph, computed: Mapping[str, Array]) -> Graph:
    """The graph with the shapes that computed tensors have."""
    edges = {graph.names.get(edge, f"v{edge}"): edge for edge in range(len(graph.types))}
    types = list(graph.types)
    for name, array in computed.items():
        if (edge := edges.get(name)) is not None:
            types[edge] = types[edge]._replace(shape=array.shape)
    return replace(graph, types=tuple(types))
