"""Operator-level coverage of graph-based fuzz testing (ICSE 2021, section "Operator-level coverage").

Five shares for each operator, then their weighted mean:

    OTC  whether it occurs
    IDC  distinct in-degrees / allowed in-degrees
    ODC  distinct out-degrees / allowed out-degrees
    SEC  distinct operators that it points to / operators
    SPC  distinct vectors (input shapes, parameters) / `max_spc`, at most 1
    OLC  the weighted mean of the five

Of a set of models each is the mean over all operators, and OLC the weighted mean of those means.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

#: Distinct vectors of an operator that count as all there are (the paper's n_maxspc).
MAX_SPC = 200

#: The out-degrees that any operator may have (paper).
OUT_DEGREES = frozenset(range(6))

#: The weight of the newest use in `novelty`: that of some ten uses together is two thirds.
_RECENT = 0.1

#: The five shares, in the paper's order.
METRICS = ("OTC", "IDC", "ODC", "SEC", "SPC")


class OperatorUse(NamedTuple):
    """One node of a model.

    in_degree   data inputs, those fed by inputs of the model included
    successors  the operator of each consumer, once for each edge
    vector      shapes of its inputs, and its parameters
    """

    operator: str
    in_degree: int
    successors: tuple[str, ...]
    vector: Hashable


class DegreeBounds(NamedTuple):
    """The in-degrees and out-degrees that an operator may have."""

    in_degrees: frozenset[int]
    out_degrees: frozenset[int]


class OperatorCounts(NamedTuple):
    """What is seen of one operator: distinct in- and out-degrees that it may have, successors, vectors."""

    in_degrees: int
    out_degrees: int
    successors: int
    vectors: int

    def shares(self, bounds: DegreeBounds, operators: int, max_spc: int = MAX_SPC) -> dict[str, float]:
        """The five shares; `operators` is how many there are. An operator that occurs has a vector."""
        return {
            "OTC": float(self.vectors > 0),
            "IDC": self.in_degrees / len(bounds.in_degrees),
            "ODC": self.out_degrees / len(bounds.out_degrees),
            "SEC": self.successors / operators,
            "SPC": min(1.0, self.vectors / max_spc),
        }


def add_olc(shares: Mapping[str, float], weights: Mapping[str, float] | None = None) -> dict[str, float]:
    """The five shares and their weighted mean, OLC; a weight that is missing is 1."""
    weight = {name: (weights or {}).get(name, 1.0) for name in METRICS}
    mean = sum(weight[name] * shares[name] for name in METRICS) / sum(weight.values())
    return {**shares, "OLC": mean}


def mean_shares(
    rows: Sequence[Mapping[str, float]], weights: Mapping[str, float] | None = None
) -> dict[str, float]:
    """The shares of a set of models, from those of each operator."""
    return add_olc({name: sum(row[name] for row in rows) / len(rows) for name in METRICS}, weights)


@dataclass
class _Seen:
    in_degrees: set[int] = field(default_factory=set)
    out_degrees: set[int] = field(default_factory=set)
    successors: set[str] = field(default_factory=set)
    vectors: set[Hashable] = field(default_factory=set)
    novelty: float = 1.0
    share: float | None = None  # OLC, until a fact is added

    def count(self) -> OperatorCounts:
        return OperatorCounts(
            len(self.in_degrees), len(self.out_degrees), len(self.successors), len(self.vectors)
        )


class OperatorLevelCoverage:
    """What the models added so far cover of `operators`; uses of other operators do not count.

    weights  metric → its weight in OLC, 1 where it is missing; 0 where a metric means nothing, as ODC does
             where all models are chains
    """

    def __init__(
        self,
        operators: Mapping[str, DegreeBounds],
        max_spc: int = MAX_SPC,
        weights: Mapping[str, float] | None = None,
    ) -> None:
        self.operators = dict(operators)
        self.max_spc = max_spc
        self.weights = {name: (weights or {}).get(name, 1.0) for name in METRICS}
        self._seen = {name: _Seen() for name in self.operators}

    def add(self, uses: Iterable[OperatorUse]) -> int:
        """Adds a model; returns how many facts of it are new: operators, degrees, successors, vectors."""
        return sum(self._add(use) for use in uses)

    def _add(self, use: OperatorUse) -> int:
        bounds = self.operators.get(use.operator)
        if bounds is None:
            return 0
        seen = self._seen[use.operator]
        before = seen.count()
        if use.in_degree in bounds.in_degrees:
            seen.in_degrees.add(use.in_degree)
        if len(use.successors) in bounds.out_degrees:
            seen.out_degrees.add(len(use.successors))
        seen.successors.update(name for name in use.successors if name in self.operators)
        if len(seen.vectors) < self.max_spc:
            seen.vectors.add(use.vector)
        after = seen.count()
        seen.novelty += ((after.vectors > before.vectors) - seen.novelty) * _RECENT
        gain = sum(after) - sum(before) + (not before.vectors)
        if gain:
            seen.share = None
        return gain

    def occurs(self, name: str) -> bool:
        """Whether a model has the operator."""
        return bool(self._seen[name].vectors)

    def novelty(self, name: str) -> float:
        """The share of an operator's recent uses that had a new vector; 1 if it was never used."""
        return self._seen[name].novelty

    def successors(self, name: str) -> Set[str]:
        """The operators that an operator points to."""
        return self._seen[name].successors

    def share(self, name: str) -> float:
        """OLC of one operator."""
        seen = self._seen[name]
        if seen.share is None:
            seen.share = self.of_operator(name)["OLC"]
        return seen.share

    def of_operator(self, name: str) -> dict[str, float]:
        """The five shares of one operator, and OLC."""
        counts, bounds = self._seen[name].count(), self.operators[name]
        return add_olc(counts.shares(bounds, len(self.operators), self.max_spc), self.weights)

    def of_set(self) -> dict[str, float]:
        """The five shares of all operators, and OLC."""
        return mean_shares([self.of_operator(name) for name in self.operators], self.weights)
