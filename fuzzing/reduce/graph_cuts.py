"""Fewer operators: results left out, parts cut out, nodes bypassed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from fuzzing.graph import Graph
from fuzzing.graph.rewrite import extract, prune, substitute
from fuzzing.reduce.engine import Attempt, cut, seek
from fuzzing.reduce.subject import Subject

#: Nodes that are tried because their operator is named; where more have it, it tells little.
_SUSPECTS = 4


def keep(subject: Subject, nodes: Iterable[int]) -> Subject | None:
    """The part of the graph that these nodes are; None if there is no such part.

    Its outputs are those that were outputs, and edges that nothing in the part uses.
    """
    graph = subject.graph
    chosen = set(nodes)
    if not chosen:
        return None
    part = extract(graph, chosen)
    used = {edge for node in part.nodes for edge in node.uses()}
    before = {graph.names[edge] for edge in graph.outputs}
    outputs = [edge for edge in part.outputs if edge not in used or part.names[edge] in before]
    return _part(subject, prune(part, outputs))


def split(subject: Subject, at: int) -> tuple[Subject, Subject] | None:
    """The nodes before number `at`, and the others, fed with what the library gives for the first."""
    before, after = keep(subject, range(at)), keep(subject, range(at, len(subject.graph.nodes)))
    return None if before is None or after is None else (before, after)


def _part(subject: Subject, part: Graph) -> Subject | None:
    """The subject with a part of its graph; None if an input would be of no known shape."""
    if not part.nodes or any(not part.types[edge].static for edge in part.inputs):
        return None
    return replace(subject, graph=part)


def named(attempt: Attempt[Subject]) -> None:
    """Nodes of the operators that the failure names, each alone, then each with those that feed it."""
    subject = attempt.best
    nodes = subject.graph.nodes
    suspects = [number for number, node in enumerate(nodes) if node.op in subject.blamed][:_SUSPECTS]
    makers = {edge: number for number, node in enumerate(nodes) for edge in node.outputs}
    fed = [
        [number, *(makers[edge] for edge in nodes[number].uses() if edge in makers)] for number in suspects
    ]
    parts = (keep(subject, part) for part in (*([number] for number in suspects), *fed))
    attempt.any(part for part in parts if part is not None)


def single(attempt: Attempt[Subject]) -> None:
    """One node alone, found by bisection."""
    seek(attempt, lambda subject: range(len(subject.graph.nodes)), keep)


def by_outputs(attempt: Attempt[Subject]) -> None:
    """Fewer outputs, and the cone of what is left."""

    def without(subject: Subject, gone: Sequence[int]) -> Subject | None:
        left = [edge for edge in subject.graph.outputs if edge not in set(gone)]
        return _part(subject, prune(subject.graph, left)) if left else None

    cut(attempt, lambda subject: subject.graph.outputs, without)


def by_nodes(attempt: Attempt[Subject]) -> None:
    """Fewer nodes: halves of the graph, then ever smaller blocks, then each."""

    def without(subject: Subject, gone: Sequence[int]) -> Subject | None:
        left = set(range(len(subject.graph.nodes))) - set(gone)
        return keep(subject, left)

    cut(attempt, lambda subject: range(len(subject.graph.nodes)), without)


def bypass(attempt: Attempt[Subject]) -> None:
    """A node taken out, and what used it fed with one of its inputs."""
    while attempt.any(_bypassed(attempt.best)):
        pass


def _bypassed(subject: Subject) -> Iterator[Subject]:
    graph = subject.graph
    for number, node in enumerate(graph.nodes):
        rest = [item for place, item in enumerate(graph.nodes) if place != number]
        if any(edge in node.outputs[1:] for item in rest for edge in item.uses()):
            continue  # one input stands for the first output, none for the others
        for edge in dict.fromkeys(node.uses()):
            if graph.types[edge] == graph.types[node.outputs[0]]:
                fed = substitute(replace(graph, nodes=tuple(rest)), {node.outputs[0]: edge})
                made = {output for item in rest for output in item.outputs}
                outputs = [output for output in dict.fromkeys(fed.outputs) if output in made]
                if outputs and (candidate := _part(subject, prune(fed, outputs))) is not None:
                    yield candidate
