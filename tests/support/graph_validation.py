"""Checks of a graph's invariants, for tests and new transformations."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from fuzzing.cases.values import CARRIERS, STRING
from fuzzing.errors import InternalError
from fuzzing.graph.ir import Constant, Graph, Node, Subgraph
from fuzzing.graph.types import ABSENT, TensorType


def validate(graph: Graph) -> None:
    """Raises InternalError with the violated invariant.

    ONNX's checker and `transformations.retype` check whether operators accept their inputs.
    """
    if graph.captured:
        raise InternalError("a model's graph captures edges, though no graph is around it")
    _validate(graph, "the graph")


def _validate(graph: Graph, where: str) -> None:
    defined: dict[int, str] = {}
    for edge in graph.inputs:
        _define(graph, defined, edge, f"an input of {where}")
    for edge in graph.captured:
        _define(graph, defined, edge, f"an edge that {where} captures")
    for edge, constant in graph.constants.items():
        if edge not in graph.inputs:
            _define(graph, defined, edge, f"an initializer of {where}")
        _check_constant(constant, f"the initializer {edge} of {where}")
        if graph.types[edge] != constant.type:
            raise InternalError(f"edge {edge} of {where} is {graph.types[edge]}, its data {constant.type}")
    for number, node in enumerate(graph.nodes):
        _check_node(graph, node, defined, f"node {number} ({node.op}) of {where}")
    for edge in graph.outputs:
        if edge not in defined:
            raise InternalError(f"{where} gives edge {edge}, which nothing defines")
    _check_unused(graph, where)
    if len(defined) != len(graph.types):
        missing = sorted(set(range(len(graph.types))) - set(defined))
        raise InternalError(f"nothing defines edges {missing} of {where}")
    _check_names(graph, where)


def _define(graph: Graph, defined: dict[int, str], edge: int, by: str) -> None:
    if edge in defined:
        raise InternalError(f"edge {edge} is {by}, and {defined[edge]}")
    if not 0 <= edge < len(graph.types):
        raise InternalError(f"edge {edge}, {by}, is none of {len(graph.types)}")
    defined[edge] = by


def _check_node(graph: Graph, node: Node, defined: dict[int, str], where: str) -> None:
    used = list(node.used_edges())
    for edge in used:
        if edge not in defined:
            raise InternalError(f"{where} uses edge {edge} before it is defined")
    for edge in node.outputs:
        _define(graph, defined, edge, f"an output of {where}")
        if used and edge <= max(used):
            raise InternalError(f"{where} gives edge {edge} and uses a larger one, {max(used)}")
    for name, value in node.attributes.items():
        if isinstance(value, Constant):
            _check_constant(value, f"the attribute {name} of {where}")
        elif isinstance(value, Subgraph):
            _check_body(graph, value, f"the body {name} of {where}")


def _check_body(graph: Graph, body: Subgraph, where: str) -> None:
    inner = body.graph
    if inner.opset != graph.opset:
        raise InternalError(f"{where} is of opset {inner.opset}, its graph of {graph.opset}")
    if len(inner.captured) != len(body.captures):
        raise InternalError(f"{where} captures {len(inner.captured)} edges and is fed {len(body.captures)}")
    for edge, source in zip(inner.captured, body.captures, strict=True):
        if not types_agree(inner.types[edge], graph.types[source]):
            raise InternalError(
                f"{where} takes edge {source}, {graph.types[source]}, for {inner.types[edge]}"
            )
    _validate(inner, where)


def types_agree(one: TensorType, other: TensorType) -> bool:
    """Whether an edge may have both types: equal except for lengths unknown in one of them."""
    if one.dtype != other.dtype:
        return False
    if one.shape is None or other.shape is None:
        return True
    pairs: Iterable[tuple[int | None, int | None]] = zip(one.shape, other.shape, strict=False)
    return one.rank == other.rank and all(a == b or None in (a, b) for a, b in pairs)


def _check_constant(constant: Constant, where: str) -> None:
    wanted = np.dtype(object) if constant.dtype == STRING else np.dtype(CARRIERS.get(constant.dtype, "V"))
    if constant.array.dtype != wanted:
        raise InternalError(
            f"{where} keeps {constant.dtype} as {constant.array.dtype}, which is not its carrier"
        )


def _check_unused(graph: Graph, where: str) -> None:
    used = {edge for node in graph.nodes for edge in node.used_edges()}.union(graph.outputs)
    for edge in sorted(used):
        if graph.types[edge] == ABSENT:
            raise InternalError(f"edge {edge} of {where} is left out, and yet used")


def _check_names(graph: Graph, where: str) -> None:
    named: dict[str, int] = {}
    for edge, name in graph.names.items():
        if name in named:
            raise InternalError(f"edges {named[name]} and {edge} of {where} are both called {name!r}")
        if not 0 <= edge < len(graph.types):
            raise InternalError(f"{where} has a name for edge {edge}, which it has not")
        named[name] = edge
