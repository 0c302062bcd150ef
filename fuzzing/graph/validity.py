"""Whether a graph is a legal ONNX model: its types, shapes and operands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fuzzing.errors import IllTypedError
from fuzzing.graph.ir import Graph, Node
from fuzzing.graph.operand_rules import obeys_rules
from fuzzing.graph.operands import ValueOf
from fuzzing.graph.transformations import retype
from fuzzing.graph.type_inference import INFERENCE_ERRORS, find_specification, infer_output_types
from fuzzing.graph.types import ABSENT, TensorType

#: Operators over windows. Where no window fits, ONNX's formula gives a length of 0 or less; torch and most
#: compilers refuse.
_WINDOWED = frozenset({"AveragePool", "Conv", "ConvInteger", "LpPool", "MaxPool", "QLinearConv"})


def find_violations(graph: Graph, value_of: ValueOf) -> frozenset[str]:
    """The rules that a graph breaks, each with its operator: `Split: operands`, `types`."""
    found = {f"{node.op}: {rule}" for node in graph.nodes for rule in _broken_rules(graph, node, value_of)}
    if found:
        return frozenset(found)  # ONNX's inference may crash on such a model
    try:
        inferred = retype(replace(graph, names={}))
    except IllTypedError:
        return frozenset({"types"})
    agree = all(_types_agree(one, other) for one, other in zip(graph.types, inferred.types, strict=True))
    legal = agree and not any(map(_is_negative, inferred.types))
    return frozenset() if legal else frozenset({"types"})


def find_broken_operands(graph: Graph, value_of: ValueOf) -> frozenset[str]:
    """The rules about operands that nodes of the main graph break, as `find_violations` has them."""
    return frozenset(f"{node.op}: operands" for node in graph.nodes if not obeys_rules(graph, node, value_of))


def _broken_rules(graph: Graph, node: Node, value_of: ValueOf) -> Iterator[str]:
    for body in node.subgraphs():
        outside = dict(zip(body.graph.captured, body.captures, strict=True))
        for inner in body.graph.nodes:
            yield from _broken_rules(body.graph, inner, _value_in(body.graph, outside, value_of))
    if any(_is_negative(graph.types[edge]) for edge in (*node.used_edges(), *node.outputs)):
        yield "negative length"
        return
    if not obeys_rules(graph, node, value_of):
        yield "operands"
        return
    if find_specification(graph, node) is None:
        return
    try:
        types = infer_output_types(graph, graph, node)
    except INFERENCE_ERRORS:
        yield "shapes"  # the specification's shape function has no result for operands that it does not allow
        return
    given = [graph.types[edge] for edge in node.used_edges()]
    made = [*(graph.types[edge] for edge in node.outputs), *(types or ())]
    if node.op in _WINDOWED and any(map(_is_empty, made)) and not any(map(_is_empty, given)):
        yield "no window fits"
    for edge, type_ in zip(node.outputs, types or (), strict=False):
        known = graph.types[edge]
        if _is_negative(type_) or (known != ABSENT and not _types_agree(known, type_)):
            yield "shapes"


def _is_empty(type_: TensorType) -> bool:
    """Whether a tensor is known to have no elements."""
    return 0 in (type_.shape or ())


def _value_in(graph: Graph, outside: Mapping[int, int], value_of: ValueOf) -> ValueOf:
    """The elements known in a body: its constants, and those of what it captures."""

    def value(edge: int) -> np.ndarray[Any, Any] | None:
        if edge in graph.constants:
            return np.asarray(graph.constants[edge].array)
        return value_of(outside[edge]) if edge in outside else None

    return value


def _types_agree(one: TensorType, other: TensorType) -> bool:
    """Whether an edge may have both types: equal, but for lengths that one of them leaves open."""
    if one.dtype != other.dtype or one.shape is None or other.shape is None:
        return one.dtype == other.dtype
    pairs = zip(one.shape, other.shape, strict=False)
    return one.rank == other.rank and all(a == b or None in (a, b) for a, b in pairs)


def _is_negative(type_: TensorType) -> bool:
    return any(length is not None and length < 0 for length in type_.shape or ())
