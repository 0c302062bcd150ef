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
from fuzzing.localise.facts import Fact
from fuzzing.localise.failure import Failure
from fuzzing.localise.search import first_place
from fuzzing.localise.ways.base import register_way
from fuzzing.reduce.graph_cuts import keep
from fuzzing.reduce.subject import Subject, load


@register_way("subgraph")
def subgraph(failure: Failure) -> Fact | None:
    """The operators of the smallest part found that shows the failure, in the order in which they run."""
    subject = _loaded(failure)
    if subject is None:
        return None
    before = failure.runs
    nodes = subject.graph.nodes
    shortest = 1 + first_place(len(nodes) - 1, lambda place: _differs(failure, subject, range(place + 1)))
    blamed = shortest - 1
    how = f"of {len(nodes)} nodes in order, the first that differs is {_name(subject, blamed)}"
    for part in _growing(subject.graph, blamed):
        if _differs(failure, subject, part):
            confirmed = _differs(failure, subject, part, fresh=True)
            found = tuple(nodes[place].op for place in sorted(part))
            return Fact(
                "subgraph", found, f"{how}; {_cut(part, blamed, subject)}", failure.runs - before, confirmed
            )
    how += "; cut out of the graph it does not differ, with all that feeds it neither"
    return Fact("subgraph", (nodes[blamed].op,), how, failure.runs - before, False)


def _loaded(failure: Failure) -> Subject | None:
    """The graph with the library's value of every edge; None for what is no graph to be taken apart."""
    if not isinstance(failure.case.program, OnnxModel):
        return None
    try:
        subject = load(failure.case, failure.bench, failure.outcome)
    except (UnreadableError, UsageError):
        return None
    return subject if len(subject.graph.nodes) > 1 else None


def _differs(
    failure: Failure, subject: Subject, nodes: range | frozenset[int], *, fresh: bool = False
) -> bool:
    case = _case(subject, nodes)
    return case is not None and failure.shown_by(failure.outcome_of(case, fresh=fresh))


def _case(subject: Subject, nodes: range | frozenset[int]) -> TestCase | None:
    part = keep(subject, nodes)
    return part.case() if part is not None else None


def _growing(graph: Graph, node: int) -> Iterator[frozenset[int]]:
    """A node; it and those that feed it; those that feed them too; …; at last all that stand before it."""
    makers = {edge: place for place, item in enumerate(graph.nodes) for edge in item.outputs}
    part = frozenset([node])
    while True:
        yield part
        fed = {makers[edge] for place in part for edge in graph.nodes[place].uses() if edge in makers}
        if fed <= part:
            break
        part |= fed
    if len(part) <= node:
        yield frozenset(range(node + 1))


def _cut(part: frozenset[int], blamed: int, subject: Subject) -> str:
    if len(part) == 1:
        return "cut out alone, on the library's values, it differs"
    others = ", ".join(_name(subject, place) for place in sorted(part - {blamed}))
    return f"cut out alone it does not differ: it takes {others} before it"


def _name(subject: Subject, place: int) -> str:
    return f"{subject.graph.nodes[place].op} (node {place})"
