"""The first part of an operator graph that differs.

The accused graph is never asked for more outputs: that changes what compilers fuse. Instead its beginnings,
in the order of its nodes, are graphs of their own, and the shortest one that fails ends in the node that
completes the failure. That node is then tried alone, on the values that the library gives it, and then with
the nodes before it, nearest first.
"""

from __future__ import annotations

from collections.abc import Iterator

from fuzzing.cases import OnnxModel, TestCase
from fuzzing.errors import UnreadableError, UsageError
from fuzzing.graph import Graph
from fuzzing.localize.facts import Fact
from fuzzing.localize.failing_case import FailingCase
from fuzzing.localize.methods.base import register_method
from fuzzing.localize.search import find_first
from fuzzing.reduce.graph_cuts import keep_nodes
from fuzzing.reduce.graph_state import GraphState, load


@register_method("subgraph")
def subgraph(failure: FailingCase) -> Fact | None:
    """The operators of the smallest part found that shows the failure, in the order in which they run."""
    state = _load_state(failure)
    if state is None:
        return None
    before = failure.runs
    nodes = state.graph.nodes
    shortest = 1 + find_first(len(nodes) - 1, lambda place: _differs(failure, state, range(place + 1)))
    blamed = shortest - 1
    how = f"of {len(nodes)} nodes in order, the first that differs is {_name(state, blamed)}"
    for part in _growing_parts(state.graph, blamed):
        if _differs(failure, state, part):
            confirmed = _differs(failure, state, part, fresh=True)
            found = tuple(nodes[place].op for place in sorted(part))
            return Fact(
                "subgraph",
                found,
                f"{how}; {_describe_part(part, blamed, state)}",
                failure.runs - before,
                confirmed,
            )
    how += "; cut out of the graph it does not differ, with all that feeds it neither"
    return Fact("subgraph", (nodes[blamed].op,), how, failure.runs - before, False)


def _load_state(failure: FailingCase) -> GraphState | None:
    """The graph with the library's value of every edge; None for what is no graph to be taken apart."""
    if not isinstance(failure.case.program, OnnxModel):
        return None
    try:
        state = load(failure.case, failure.evaluator, failure.outcome)
    except (UnreadableError, UsageError):
        return None
    return state if len(state.graph.nodes) > 1 else None


def _differs(
    failure: FailingCase, state: GraphState, nodes: range | frozenset[int], *, fresh: bool = False
) -> bool:
    case = _case(state, nodes)
    return case is not None and failure.shows_same_bug(failure.run_case(case, fresh=fresh))


def _case(state: GraphState, nodes: range | frozenset[int]) -> TestCase | None:
    part = keep_nodes(state, nodes)
    return part.case() if part is not None else None


def _growing_parts(graph: Graph, node: int) -> Iterator[frozenset[int]]:
    """A node; it and those that feed it; those that feed them too; …; at last all that stand before it."""
    makers = {edge: place for place, item in enumerate(graph.nodes) for edge in item.outputs}
    part = frozenset([node])
    while True:
        yield part
        fed = {makers[edge] for place in part for edge in graph.nodes[place].used_edges() if edge in makers}
        if fed <= part:
            break
        part |= fed
    if len(part) <= node:
        yield frozenset(range(node + 1))


def _describe_part(part: frozenset[int], blamed: int, state: GraphState) -> str:
    if len(part) == 1:
        return "cut out alone, on the library's values, it differs"
    others = ", ".join(_name(state, place) for place in sorted(part - {blamed}))
    return f"cut out alone it does not differ: it takes {others} before it"


def _name(state: GraphState, place: int) -> str:
    return f"{state.graph.nodes[place].op} (node {place})"
