"""Converts a graph to another opset of ONNX."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import onnx

from fuzzing.errors import UnreadableError, UnwritableError
from fuzzing.graph.ir import Graph, Subgraph
from fuzzing.graph.onnx_reader import from_onnx
from fuzzing.graph.onnx_writer import to_onnx


def convert_opset(graph: Graph, opset: int) -> Graph:
    """The graph at another opset of the default domain; edges that stay keep their names.

    If no operator changed between the two, only the number changes; else ONNX's version converter does it.
    Raises UnwritableError where the converter fails, and for bodies, which it skips.
    """
    if graph.opset == opset:
        return graph
    newest = onnx.defs.onnx_opset_version()
    if not 1 <= opset <= newest:
        raise UnwritableError(f"the installed onnx has opsets 1 to {newest}, not {opset}")
    changed = sorted(set(_changed_operators(graph, opset)))
    if not changed:
        return _with_opset(graph, opset)
    way = f"from opset {graph.opset} to {opset}"
    if any(
        True
        for node in graph.nodes
        for body in node.subgraphs()
        for _ in _changed_operators(body.graph, opset)
    ):
        raise UnwritableError(f"bodies cannot be converted {way}; they hold {', '.join(changed)}")
    try:
        converted = onnx.version_converter.convert_version(to_onnx(graph), opset)
        onnx.checker.check_model(converted, full_check=True)
        return from_onnx(converted)
    except (RuntimeError, onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise UnwritableError(f"onnx cannot convert {', '.join(changed)} {way}: {error}") from error
    except UnreadableError as error:
        raise UnwritableError(f"what onnx makes of the graph {way} cannot be read: {error}") from error


def _changed_operators(graph: Graph, opset: int) -> list[str]:
    found = []
    for node in graph.nodes:
        if node.domain == "" and _since(node.op, graph.opset) != _since(node.op, opset):
            found.append(node.op)
        for body in node.subgraphs():
            found += _changed_operators(body.graph, opset)
    return found


@cache
def _since(op: str, opset: int) -> int:
    """The opset that defines an operator's form at this opset; 0 if there is none."""
    try:
        schema = onnx.defs.get_schema(op, opset, "")
    except onnx.defs.SchemaError:
        return 0
    return 0 if schema.deprecated else schema.since_version


def _with_opset(graph: Graph, opset: int) -> Graph:
    nodes = tuple(
        [
            node._replace(
                attributes={
                    name: Subgraph(_with_opset(value.graph, opset), value.captures)
                    if isinstance(value, Subgraph)
                    else value
                    for name, value in node.attributes.items()
                }
            )
            for node in graph.nodes
        ]
    )
    return replace(graph, opset=opset, nodes=nodes)
