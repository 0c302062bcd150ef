"""What models show of a set of operators: of one model, or of many together.

Only nodes whose type is in the set count, as producers, consumers and neighbors. Nodes that a generator
appends to join loose ends (`is_appended`) never do, but for the out-degrees as Isra's release counts them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, fields

from fuzzing.coverage.models import Attributes, Node, Scope, Shape, TensorType
from fuzzing.coverage.operators import OperatorSet

#: How Isra's release names the nodes that it appends (g.py): a Flatten for each loose end, then a Concat.
_CLOSING = ("flatten_", "concat_outputs")

Pair = tuple[str, str]
Triple = tuple[str, str, str]
#: An operator with what one of its nodes has: its attributes, and the shape of each input.
Vector = tuple[str, Attributes, tuple["Shape | None", ...]]


def is_appended(node: Node) -> bool:
    """Whether a generator appended the node so that its graph has one output; only its name shows it."""
    return node.name.startswith(_CLOSING)


@dataclass
class Observations:
    """What models show; nodes, edges and paths are those between operators of the set.

    operators     operator → its nodes
    outside       operators that are not in the set → their nodes
    closing       appended nodes, which are in neither
    edges         producer and consumer → how many pairs of nodes are so connected, be it by several tensors
    paths         how many triples of nodes are connected by two consecutive edges
    triples       the types along such paths
    in_degrees    operators with their numbers of inputs
    out_degrees   operators with their numbers of consumers in the set, without appended nodes
    out_degrees_released  the same with appended nodes
    attributes    operators with the attributes of their nodes
    inputs        operators with the shapes of single inputs of their nodes
    vectors       operators with the attributes and the shapes of all inputs of a node
    types         what is known of consumed tensors → how often it is consumed
    """

    operators: Counter[str] = field(default_factory=Counter)
    outside: Counter[str] = field(default_factory=Counter)
    closing: int = 0
    edges: Counter[Pair] = field(default_factory=Counter)
    paths: int = 0
    triples: set[Triple] = field(default_factory=set)
    in_degrees: set[tuple[str, int]] = field(default_factory=set)
    out_degrees: set[tuple[str, int]] = field(default_factory=set)
    out_degrees_released: set[tuple[str, int]] = field(default_factory=set)
    attributes: set[tuple[str, Attributes]] = field(default_factory=set)
    inputs: set[tuple[str, Shape]] = field(default_factory=set)
    vectors: set[Vector] = field(default_factory=set)
    types: Counter[TensorType] = field(default_factory=Counter)

    @property
    def shapes(self) -> set[Shape]:
        """The distinct shapes of consumed tensors."""
        return {one.shape for one in self.types if one.shape is not None}

    def merge(self, other: Observations) -> None:
        """Adds what other models show: numbers add up, sets unite."""
        for part in fields(Observations):
            mine, theirs = getattr(self, part.name), getattr(other, part.name)
            if isinstance(mine, int):
                setattr(self, part.name, mine + theirs)
            else:
                mine.update(theirs)


def observe_scopes(scopes: Iterable[Scope], operators: OperatorSet) -> Observations:
    """What a model shows of `operators`; `scopes` as `models.extract_scopes` gives them."""
    observations = Observations()
    for scope in scopes:
        _ScopeObserver(scope, operators, observations).count()
    return observations


class _ScopeObserver:
    """Adds one scope to `observations`. Fills sets and counters at once, from lists: the time goes here."""

    def __init__(self, scope: Scope, operators: OperatorSet, observations: Observations) -> None:
        self._operators, self._facts = operators, observations
        self._members: list[Node] = []
        self._closing: list[Node] = []
        allowed, outside = operators.in_degrees, []
        for node in scope:
            if is_appended(node):
                self._closing.append(node)
            elif node.operator in allowed:
                self._members.append(node)
            else:
                outside.append(node.operator)
        observations.outside.update(outside)
        observations.closing += len(self._closing)

    def count(self) -> None:
        self._nodes()
        self._neighbors()
        self._out_degrees()

    def _nodes(self) -> None:
        observations, members, in_degree = self._facts, self._members, self._operators.in_degree
        observations.operators.update([node.operator for node in members])
        observations.types.update([one for node in members for one in node.types])
        nodes = {(node.operator, node.attributes, node.types) for node in members}
        observations.vectors.update(
            [
                (operator, attributes, tuple([one.shape for one in types]))
                for operator, attributes, types in nodes
            ]
        )
        observations.attributes.update([(operator, attributes) for operator, attributes, _ in nodes])
        seen = {(operator, types) for operator, _, types in nodes}
        observations.inputs.update(
            [(operator, one.shape) for operator, types in seen for one in types if one.shape is not None]
        )
        observations.in_degrees.update(
            [(operator, in_degree(operator, len(types))) for operator, types in seen]
        )

    def _neighbors(self) -> None:
        """Edges, and the paths that they make: each node joins those before it with those behind it."""
        members, observations = self._members, self._facts
        producers = {name: at for at, node in enumerate(members) for name in node.outputs}
        before = [{producers[name] for name in node.inputs if name in producers} for node in members]
        behind: list[list[str]] = [[] for _ in members]
        for node, sources in zip(members, before, strict=True):
            for at in sources:
                behind[at].append(node.operator)
        names = [node.operator for node in members]
        observations.edges.update(
            [(name, other) for name, targets in zip(names, behind, strict=True) for other in targets]
        )
        triples = []
        for name, sources, targets in zip(names, before, behind, strict=True):
            if sources and targets:
                observations.paths += len(sources) * len(targets)
                triples += [(names[at], name, other) for at in sources for other in targets]
        observations.triples.update(triples)

    def _out_degrees(self) -> None:
        observations, members = self._facts, self._members
        consumed = Counter([name for node in members for name in node.inputs])
        degrees = _degrees(members, consumed)
        observations.out_degrees.update(degrees)
        closing = [node for node in self._closing if node.operator in self._operators.in_degrees]
        if closing:
            consumed.update([name for node in closing for name in node.inputs])
            degrees = _degrees(members, consumed)
        observations.out_degrees_released.update(degrees)


def _degrees(members: list[Node], consumed: Counter[str]) -> set[tuple[str, int]]:
    """Operators with how often their outputs are consumed."""
    times = consumed.get
    return {(node.operator, sum([times(name, 0) for name in node.outputs])) for node in members}
