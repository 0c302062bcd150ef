"""Removes operators: outputs removed, parts extracted, nodes bypassed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from fuzzing.graph import Graph
from fuzzing.graph.transformations import extract, prune, substitute
from fuzzing.reduce.engine import Attempt, ddmin, find_single
from fuzzing.reduce.graph_state import GraphState

#: Nodes tried because the message names their operator; with more, the name is not informative.
_SUSPECTS = 4


def keep_nodes(state: GraphState, nodes: Iterable[int]) -> GraphState | None:
    """The subgraph of these nodes; None if it is invalid.

    Its outputs are former outputs, and edges that nothing in it uses.
    """
    graph = state.graph
    chosen = set(nodes)
    if not chosen:
        return None
    part = extract(graph, chosen)
    used = {edge for node in part.nodes for edge in node.used_edges()}
    before = {graph.names[edge] for edge in graph.outputs}
    outputs = [edge for edge in part.outputs if edge not in used or part.names[edge] in before]
    return _with_graph(state, prune(part, outputs))


def split(state: GraphState, at: int) -> tuple[GraphState, GraphState] | None:
    """The nodes before number `at`, and the others with the library's values of the former as inputs."""
    before, after = keep_nodes(state, range(at)), keep_nodes(state, range(at, len(state.graph.nodes)))
    return None if before is None or after is None else (before, after)


def _with_graph(state: GraphState, part: Graph) -> GraphState | None:
    """The state with a part of its graph; None if an input would have no known shape."""
    if not part.nodes or any(not part.types[edge].static for edge in part.inputs):
        return None
    return replace(state, graph=part)


def isolate_named_nodes(attempt: Attempt[GraphState]) -> None:
    """Nodes of the operators that the failure names, each alone, then each with its producers."""
    state = attempt.best
    nodes = state.graph.nodes
    suspects = [number for number, node in enumerate(nodes) if node.op in state.message_words][:_SUSPECTS]
    makers = {edge: number for number, node in enumerate(nodes) for edge in node.outputs}
    fed = [
        [number, *(makers[edge] for edge in nodes[number].used_edges() if edge in makers)]
        for number in suspects
    ]
    parts = (keep_nodes(state, part) for part in (*([number] for number in suspects), *fed))
    attempt.any(part for part in parts if part is not None)


def isolate_node(attempt: Attempt[GraphState]) -> None:
    """One node alone, found by bisection."""
    find_single(attempt, lambda state: range(len(state.graph.nodes)), keep_nodes)


def remove_outputs(attempt: Attempt[GraphState]) -> None:
    """Removes outputs, and nodes that become unused."""

    def without(state: GraphState, gone: Sequence[int]) -> GraphState | None:
        left = [edge for edge in state.graph.outputs if edge not in set(gone)]
        return _with_graph(state, prune(state.graph, left)) if left else None

    ddmin(attempt, lambda state: state.graph.outputs, without)


def remove_nodes(attempt: Attempt[GraphState]) -> None:
    """Removes nodes: halves of the graph, then ever smaller blocks, then each."""

    def without(state: GraphState, gone: Sequence[int]) -> GraphState | None:
        left = set(range(len(state.graph.nodes))) - set(gone)
        return keep_nodes(state, left)

    ddmin(attempt, lambda state: range(len(state.graph.nodes)), without)


def bypass_nodes(attempt: Attempt[GraphState]) -> None:
    """Removes a node, and connects its users to one of its inputs."""
    while attempt.any(_bypass_candidates(attempt.best)):
        pass


def _bypass_candidates(state: GraphState) -> Iterator[GraphState]:
    graph = state.graph
    for number, node in enumerate(graph.nodes):
        rest = [item for place, item in enumerate(graph.nodes) if place != number]
        if any(edge in node.outputs[1:] for item in rest for edge in item.used_edges()):
            continue  # one input replaces the first output, none the others
        for edge in dict.fromkeys(node.used_edges()):
            if graph.types[edge] == graph.types[node.outputs[0]]:
                fed = substitute(replace(graph, nodes=tuple(rest)), {node.outputs[0]: edge})
                made = {output for item in rest for output in item.outputs}
                outputs = [output for output in dict.fromkeys(fed.outputs) if output in made]
                if outputs and (candidate := _with_graph(state, prune(fed, outputs))) is not None:
                    yield candidate
