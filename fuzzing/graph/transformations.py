"""Functions from graphs to graphs, for reducers and mutators. None modifies its arguments.

Edges are renumbered where some are removed, but keep the names under which `onnx_writer` wrote them, so a
model's inputs keep their names.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import onnx

from fuzzing.errors import IllTypedError, UnreadableError, UsageError
from fuzzing.graph.ir import Attribute, Graph, Node, Subgraph
from fuzzing.graph.onnx_reader import read
from fuzzing.graph.onnx_writer import to_onnx, to_onnx_untyped
from fuzzing.graph.type_inference import complete_types, infer_types
from fuzzing.graph.types import ABSENT, UNKNOWN, TensorType


def prune(graph: Graph, outputs: Sequence[int]) -> Graph:
    """The graph that computes these edges, with only what they need: inputs, initializers, nodes."""
    needed = set(outputs)
    nodes: list[Node] = []
    for node in reversed(graph.nodes):
        if not needed.isdisjoint(node.outputs):
            nodes.append(node)
            needed.update(node.used_edges())
    nodes.reverse()
    inputs = tuple([edge for edge in graph.inputs if edge in needed])
    return _renumber_densely(replace(graph, inputs=inputs, outputs=tuple(outputs)), nodes, needed)


def extract(graph: Graph, nodes: Iterable[int]) -> Graph:
    """These nodes, by index in `graph.nodes`, as a graph of their own.

    Edges of other nodes become inputs, after the graph inputs in use; initializers stay initializers. Outputs
    are the edges used elsewhere or by nothing. Raises UsageError if there is no node.
    """
    chosen = set(nodes)
    if not chosen:
        raise UsageError("a graph of no nodes cannot be extracted")
    inside = [node for place, node in enumerate(graph.nodes) if place in chosen]
    outside = [node for place, node in enumerate(graph.nodes) if place not in chosen]
    used = {edge for node in inside for edge in node.used_edges()}
    given = {edge for node in inside for edge in node.outputs}
    wanted = {edge for node in outside for edge in node.used_edges()}.union(graph.outputs)
    outputs = [
        edge for edge in sorted(given) if graph.types[edge] != ABSENT and (edge in wanted or edge not in used)
    ]
    kept = [edge for edge in graph.inputs if edge in used]
    fed = sorted(used - given - set(graph.inputs) - set(graph.constants))
    return _renumber_densely(
        replace(graph, inputs=(*kept, *fed), outputs=tuple(outputs), captured=()), inside, used
    )


def substitute(graph: Graph, edges: Mapping[int, int]) -> Graph:
    """The graph in which every use of edge e is replaced by `edges[e]`, simultaneously; no node goes.

    Nodes are reordered if needed; types stay (see `retype`). Raises UsageError for a cycle.
    """
    nodes = [node.replace_inputs(edges) for node in graph.nodes]
    outputs = tuple([edges.get(edge, edge) for edge in graph.outputs])
    changed = replace(graph, nodes=tuple(nodes), outputs=outputs)
    if all(
        max(node.used_edges(), default=-1) < min(node.outputs, default=len(graph.types)) for node in nodes
    ):
        return changed
    ordered = _sort_nodes(nodes)
    made = {edge for node in nodes for edge in node.outputs}
    order = [edge for edge in range(len(graph.types)) if edge not in made]
    order += [edge for node in ordered for edge in node.outputs]
    numbers = {edge: number for number, edge in enumerate(order)}
    return replace(changed, nodes=tuple(ordered)).renumber(numbers)


def retype(graph: Graph, *, legal: bool = False) -> Graph:
    """The graph with all types inferred again from its inputs and constants.

    legal  whether the operators are known to accept their inputs: then specifications suffice where every
           node has one, about ten times faster; else ONNX checks and infers all of it

    Raises IllTypedError, with ONNX's message, if an operator rejects its inputs or attributes.
    """
    if legal:
        found = infer_types(graph)
        if found is not None:
            return found
    after = complete_types(_with_types(graph, _infer_with_onnx(graph)))
    types = list(after.types)
    for edge in after.outputs:
        if types[edge] == TensorType(graph.types[edge].dtype, None):
            types[edge] = graph.types[edge]
    made = replace(after, types=tuple(types))
    try:
        onnx.checker.check_model(to_onnx(made))
    except onnx.checker.ValidationError as error:
        raise IllTypedError(f"the graph is no valid model: {error}") from error
    return made


def _renumber_densely(graph: Graph, nodes: Sequence[Node], needed: Collection[int]) -> Graph:
    constants = {edge: constant for edge, constant in graph.constants.items() if edge in needed}
    edges = {edge for node in nodes for edge in node.outputs}
    edges.update(graph.inputs, graph.captured, constants)
    numbers = {edge: number for number, edge in enumerate(sorted(edges))}
    names = {edge: name for edge, name in graph.names.items() if edge in edges}
    return replace(graph, constants=constants, nodes=tuple(nodes), names=names).renumber(numbers)


def _sort_nodes(nodes: Sequence[Node]) -> list[Node]:
    makers = {edge: place for place, node in enumerate(nodes) for edge in node.outputs}
    missing = [{makers[edge] for edge in node.used_edges() if edge in makers} for node in nodes]
    waiting: dict[int, list[int]] = {}
    for place, needs in enumerate(missing):
        for need in needs:
            waiting.setdefault(need, []).append(place)
    ready = [place for place, needs in enumerate(missing) if not needs]
    ordered: list[Node] = []
    while ready:
        place = heapq.heappop(ready)
        ordered.append(nodes[place])
        for waiter in waiting.get(place, ()):
            missing[waiter].discard(place)
            if not missing[waiter]:
                heapq.heappush(ready, waiter)
    if len(ordered) < len(nodes):
        stuck = next(place for place, needs in enumerate(missing) if needs)
        raise UsageError(f"the outputs of node {stuck} ({nodes[stuck].op}) would depend on themselves")
    return ordered


def _infer_with_onnx(graph: Graph) -> Graph:
    """The graph, nameless, with the types that ONNX infers.

    The inputs of bodies keep their declared types unless ONNX finds that what feeds them disagrees.
    """
    bare = _strip_names(graph)
    try:
        return read(to_onnx_untyped(bare), strict=True)
    except onnx.shape_inference.InferenceError as error:
        if not any(True for node in graph.nodes for _ in node.subgraphs()):
            raise IllTypedError(f"ONNX cannot type the graph: {error}") from error
    except UnreadableError as error:
        raise IllTypedError(f"ONNX must not type the graph: {error}") from error
    try:
        return read(to_onnx_untyped(bare, body_inputs=False), strict=True)
    except onnx.shape_inference.InferenceError as error:
        raise IllTypedError(f"ONNX cannot type the graph: {error}") from error


def _strip_names(graph: Graph) -> Graph:
    def bare(value: Attribute) -> Attribute:
        return Subgraph(_strip_names(value.graph), value.captures) if isinstance(value, Subgraph) else value

    nodes = tuple(
        [
            _replace_attributes(node, {name: bare(value) for name, value in node.attributes.items()})
            for node in graph.nodes
        ]
    )
    return replace(graph, names={}, nodes=nodes)


def _replace_attributes(node: Node, attributes: Mapping[str, Attribute]) -> Node:
    return node._replace(attributes=attributes) if any(True for _ in node.subgraphs()) else node


def _with_types(graph: Graph, source: Graph) -> Graph:
    pairs = zip(graph.types, source.types, strict=True)
    types = [
        old if new == UNKNOWN else new for old, new in pairs
    ]  # what cannot be inferred is taken as it is
    nodes = []
    for node, other in zip(graph.nodes, source.nodes, strict=True):
        attributes = dict(node.attributes)
        for name, value in node.attributes.items():
            typed_body = other.attributes[name]
            if isinstance(value, Subgraph) and isinstance(typed_body, Subgraph):
                attributes[name] = Subgraph(_with_types(value.graph, typed_body.graph), value.captures)
        nodes.append(_replace_attributes(node, attributes))
    return replace(graph, types=tuple(types), nodes=tuple(nodes))
