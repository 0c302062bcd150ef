"""Coverage of many models: sums and sets that merge, so that several processes may share the work.

Tallies of one operator set form a commutative monoid with the empty tally as neutral element. Memory grows
with distinct shapes, attributes and paths, not with the number of models.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from fuzzing.coverage.models import Scope
from fuzzing.coverage.observations import Observations, observe_scopes
from fuzzing.coverage.operators import OperatorSet
from fuzzing.errors import InternalError


class GraphCounts(NamedTuple):
    """The counts behind the graph-level metrics, for one model.

    nodes       of operators of the set
    operators   distinct types of these
    edges       pairs of nodes that are connected
    pairs       distinct pairs of their types
    paths       triples of nodes that two consecutive edges connect
    triples     distinct triples of their types
    shapes      distinct shapes of consumed tensors
    attributes  distinct pairs of a type and its attributes
    new_attributes  those of `attributes` that no earlier model has: the only figure that depends on the order
    """

    nodes: int
    operators: int
    edges: int
    pairs: int
    paths: int
    triples: int
    shapes: int
    attributes: int
    new_attributes: int


@dataclass
class Tally:
    """What the models added so far show of `operators`.

    sums      figure → its sum over all models; not `new_attributes`, which is `observations.attributes`
    nodes_of  nodes in a model → models with so many; appended nodes do not count, those of other operators do
    """

    operators: OperatorSet
    models: int = 0
    observations: Observations = field(default_factory=Observations)
    sums: Counter[str] = field(default_factory=Counter)
    nodes_of: Counter[int] = field(default_factory=Counter)

    @property
    def nodes(self) -> int:
        """Nodes of all models, as in `nodes_of`."""
        return sum(nodes * models for nodes, models in self.nodes_of.items())

    def add(self, scopes: Iterable[Scope]) -> GraphCounts:
        """Adds a model, given as `models.extract_scopes` gives it; returns its own figures."""
        observations = observe_scopes(scopes, self.operators)
        counts = GraphCounts(
            nodes=observations.operators.total(),
            operators=len(observations.operators),
            edges=observations.edges.total(),
            pairs=len(observations.edges),
            paths=observations.paths,
            triples=len(observations.triples),
            shapes=len(observations.shapes),
            attributes=len(observations.attributes),
            new_attributes=len(observations.attributes - self.observations.attributes),
        )
        self.models += 1
        self.nodes_of[counts.nodes + observations.outside.total()] += 1
        self.sums.update(
            {name: value for name, value in counts._asdict().items() if name != "new_attributes"}
        )
        self.observations.merge(observations)
        return counts

    def merge(self, other: Tally) -> None:
        """Adds all models of another tally, which must be of the same operator set."""
        if other.operators != self.operators:
            raise InternalError(f"tallies of {self.operators.name} and {other.operators.name} do not merge")
        self.models += other.models
        self.observations.merge(other.observations)
        self.sums.update(other.sums)
        self.nodes_of.update(other.nodes_of)
