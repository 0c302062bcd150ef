"""Isolates the operators of a model, to judge each by what it was given.

The operators of a compiled model are given what the compiler computed before them. With those numbers as
inputs, the library tells what each should have made of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fuzzing.cases import Input, OnnxModel, TestCase
from fuzzing.cases.values import Tensor, Value
from fuzzing.graph.ir import Graph
from fuzzing.graph.onnx_reader import from_onnx
from fuzzing.graph.onnx_writer import to_bytes
from fuzzing.graph.transformations import substitute
from fuzzing.graph.types import TensorType

#: Types of numbers that are rounded. Others are computed again from these.
_FLOATS = frozenset(("float16", "float32", "float64"))


def observe_numbers(case: TestCase) -> TestCase | None:
    """The case with all floats that its model computes as outputs, those of the model first; no reference.

    None for a model of one operator, one that computes no floats, or where a type is unknown. Raises
    CaseFormatError or UsageError for a model that cannot be read.
    """
    graph = _named(case)
    if len(graph.nodes) < 2 or not _computed(graph):
        return None
    outputs = (*graph.outputs, *(edge for edge in _computed(graph) if edge not in graph.outputs))
    if any(graph.types[edge].shape is None for edge in outputs):
        return None
    return _case(case, replace(graph, outputs=outputs), dict(case.inputs))


def isolate_operators(case: TestCase, given: Mapping[str, Value]) -> TestCase:
    """The case of `observe_numbers` in which each operator takes the floats `given` of the others.

    given  by the names of the outputs of `observe_numbers`
    """
    graph = _named(case)
    observed = [edge for edge in _computed(graph) if isinstance(given.get(graph.names[edge]), Tensor)]
    outputs = [graph.names[edge] for edge in dict.fromkeys((*graph.outputs, *_computed(graph)))]
    types, names, inputs = list(graph.types), dict(graph.names), dict(case.inputs)
    replaced: dict[int, int] = {}
    for edge in observed:
        value = given[names[edge]]
        assert isinstance(value, Tensor)
        replaced[edge] = len(types)
        names[len(types)] = f"given_{names[edge]}"
        inputs[f"given_{names[edge]}"] = value
        types.append(TensorType(value.dtype, value.shape))
    widened = replace(
        graph, types=tuple(types), names=names, inputs=(*graph.inputs, *replaced.values()), outputs=()
    )
    isolated = substitute(widened, replaced)
    edges = {name: edge for edge, name in isolated.names.items()}
    return _case(case, replace(isolated, outputs=tuple(edges[name] for name in outputs)), inputs)


def _named(case: TestCase) -> Graph:
    """The graph of a case, its inputs and outputs by their own names, and each edge by some name."""
    assert isinstance(case.program, OnnxModel)
    graph = from_onnx(case.program.model)
    return replace(graph, names={edge: graph.names.get(edge, f"v{edge}") for edge in range(len(graph.types))})


def _computed(graph: Graph) -> list[int]:
    """The floats that nodes compute."""
    return [edge for node in graph.nodes for edge in node.outputs if graph.types[edge].dtype in _FLOATS]


def _case(case: TestCase, graph: Graph, inputs: Mapping[str, Input]) -> TestCase:
    names = [graph.names[edge] for edge in graph.inputs]
    named = tuple((name, inputs[name]) for name in names if name in inputs)  # others have a default
    return replace(case, program=OnnxModel(to_bytes(graph)), inputs=named, expected=None)
