"""Reduces bodies of If, Loop and Scan: nodes bypassed inside, an If replaced by a branch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fuzzing.errors import UsageError
from fuzzing.graph import Graph, Node
from fuzzing.graph.ir import Subgraph
from fuzzing.graph.transformations import prune, substitute
from fuzzing.reduce.engine import Attempt
from fuzzing.reduce.graph_state import GraphState


def inline_branches(attempt: Attempt[GraphState]) -> None:
    """Replaces an If by one of its branches, whatever the condition."""
    while attempt.any(_inline_candidates(attempt.best)):
        pass


def shrink_subgraphs(attempt: Attempt[GraphState]) -> None:
    """Removes a node of a body, and connects its users to another edge of its type."""
    while attempt.any(_smaller_states(attempt.best)):
        pass


def _inline_candidates(state: GraphState) -> Iterator[GraphState]:
    for place, node in enumerate(state.graph.nodes):
        if node.op == "If":
            for body in node.subgraphs():
                try:
                    graph = _inline_branch(state.graph, place, body)
                except UsageError:
                    continue  # the branch returns an input that depends on the If
                yield replace(state, graph=prune(graph, graph.outputs))


def _inline_branch(graph: Graph, place: int, body: Subgraph) -> Graph:
    """The graph with the nodes of a branch instead of its If."""
    inner, first = body.graph, len(graph.types)
    numbers = {edge: first + edge for edge in range(len(inner.types))}
    numbers.update(zip(inner.captured, body.captures, strict=True))
    nodes = [node.renumber(numbers) for node in inner.nodes]
    names = {number: f"{graph.names[graph.nodes[place].outputs[0]]} {number}" for number in numbers.values()}
    wide = replace(
        graph,
        types=(*graph.types, *inner.types),
        constants={**graph.constants, **{numbers[edge]: item for edge, item in inner.constants.items()}},
        nodes=(*graph.nodes[:place], *nodes, *graph.nodes[place + 1 :]),
        names={**names, **graph.names},
    )
    given = [numbers[edge] for edge in inner.outputs]
    return substitute(wide, dict(zip(graph.nodes[place].outputs, given, strict=True)))


def _smaller_states(state: GraphState) -> Iterator[GraphState]:
    graph = state.graph
    for place, node in enumerate(graph.nodes):
        for smaller in _smaller_nodes(node):
            nodes = (*graph.nodes[:place], smaller, *graph.nodes[place + 1 :])
            changed = replace(graph, nodes=nodes)
            yield replace(state, graph=prune(changed, changed.outputs))


def _smaller_nodes(node: Node) -> Iterator[Node]:
    """The node with one of its bodies smaller by at least a node."""
    for name, value in node.attributes.items():
        if isinstance(value, Subgraph):
            for body in _smaller_bodies(value):
                yield node._replace(attributes={**node.attributes, name: body})


def _smaller_bodies(body: Subgraph) -> Iterator[Subgraph]:
    graph = body.graph
    for place, node in enumerate(graph.nodes):
        for smaller in _smaller_nodes(node):
            nodes = (*graph.nodes[:place], smaller, *graph.nodes[place + 1 :])
            yield _remove_unused(replace(graph, nodes=nodes), body.captures)
        if any(edge in other.used_edges() for edge in node.outputs[1:] for other in graph.nodes):
            continue  # one edge replaces the first output, none the others
        rest = (*graph.nodes[:place], *graph.nodes[place + 1 :])
        for edge in dict.fromkeys([*node.used_edges(), *graph.inputs, *graph.captured]):
            if graph.types[edge] == graph.types[node.outputs[0]]:
                fed = substitute(replace(graph, nodes=rest), {node.outputs[0]: edge})
                if not set(node.outputs) & set(fed.outputs):
                    yield _remove_unused(fed, body.captures)


def _remove_unused(graph: Graph, captures: tuple[int, ...]) -> Subgraph:
    """A body without unused nodes. Its inputs stay, as the operator passes them all."""
    needed, nodes = set(graph.outputs), []
    for node in reversed(graph.nodes):
        if not needed.isdisjoint(node.outputs):
            nodes.append(node)
            needed.update(node.used_edges())
    fed = {edge: outer for edge, outer in zip(graph.captured, captures, strict=True) if edge in needed}
    constants = {edge: item for edge, item in graph.constants.items() if edge in needed}
    edges = {*graph.inputs, *fed, *constants, *(edge for node in nodes for edge in node.outputs)}
    numbers = {edge: number for number, edge in enumerate(sorted(edges))}
    names = {edge: name for edge, name in graph.names.items() if edge in edges}
    small = replace(
        graph, constants=constants, nodes=tuple(reversed(nodes)), captured=tuple(fed), names=names
    )
    return Subgraph(small.renumber(numbers), tuple(fed.values()))
