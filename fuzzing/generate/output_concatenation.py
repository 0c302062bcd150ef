"""Isra's graph outputs: all unused edges, flattened and concatenated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fuzzing.graph import Graph, Node, TensorType
from fuzzing.graph.types import Dim

#: How Isra's release names the nodes it appends (`g.py`); `fuzzing.coverage` recognizes them by it.
FLATTEN, CONCAT = "flatten_", "concat_outputs"


def concatenate_outputs(graph: Graph) -> Graph:
    """The graph with one output for each element type: a Concat takes one."""
    types, nodes, names = list(graph.types), list(graph.nodes), dict(graph.names)

    def add(op: str, inputs: Sequence[int], type_: TensorType, name: str, axis: int) -> int:
        types.append(type_)
        edge = len(types) - 1
        nodes.append(Node(op, tuple(inputs), (edge,), {"axis": axis}))
        names[edge] = name
        return edge

    flats: dict[str, list[int]] = {}
    for edge in graph.outputs:
        type_ = types[edge]
        flat = TensorType(type_.dtype, (1, type_.elements if type_.static else None))
        made = add("Flatten", (edge,), flat, f"{FLATTEN}{edge}", 0)
        flats.setdefault(type_.dtype, []).append(made)
    outputs = []
    for place, (dtype, edges) in enumerate(flats.items()):
        name = f"{CONCAT}_{dtype}" if place else CONCAT
        outputs.append(add("Concat", edges, TensorType(dtype, (1, _count_elements(types, edges))), name, -1))
    return replace(graph, types=tuple(types), nodes=tuple(nodes), outputs=tuple(outputs), names=names)


def count_concatenation_nodes(graph: Graph) -> int:
    """How many of the last nodes only concatenate outputs."""
    count = 0
    for node in reversed(graph.nodes):
        if not graph.names.get(node.outputs[0], "").startswith((FLATTEN, CONCAT)):
            break
        count += 1
    return count


def _count_elements(types: Sequence[TensorType], edges: Sequence[int]) -> Dim:
    return sum(types[edge].elements for edge in edges) if all(types[edge].static for edge in edges) else None
