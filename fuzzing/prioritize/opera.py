"""OPERA's ranking (ICSE 2025): neglected operators first, and of each the settings not yet covered.

Four strategies: `opera` (= `opera-code`) computes what the released code computes,
`opera-paper` what the paper defines, `opera-operator` and `opera-parameters` the code's two
factors alone. docs/prioritization.md lists where the two differ and what they leave open.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace
from typing import Any

import numpy as np

from fuzzing.prioritize import abstraction, greedy
from fuzzing.prioritize.call_binding import OUTPUT
from fuzzing.prioritize.instances import Instance
from fuzzing.prioritize.opera_filter import filter_requested, is_refused
from fuzzing.prioritize.strategies import Context, Ranked, register_strategy, shuffle
from fuzzing.prioritize.table import Table, tabulate

#: Count of an operator that the compiler's own suite lacks: the paper divides by the number of tests there
#: and does not define the result for 0.
NEVER_TESTED = 0.5


@dataclass(frozen=True)
class Operator:
    """The instances of one operator, abstracted.

    places  indices of the instances, ascending
    suite   number of tests of the operator in the compiler's own suite; 0 too if they were not counted
    """

    frontend: str
    name: str
    places: list[int]
    table: Table
    suite: int
    recorded: bool

    @property
    def neglect(self) -> float:
        """As in the paper: occurrences among the migrated tests over those in the compiler's suite."""
        return len(self.places) / max(self.suite, NEVER_TESTED)

    @property
    def uncovered(self) -> float:
        """As in the code: 1 - Π covered share of each parameter and pair; 1 for an operator the suite lacks.

        If the suite's number of tests of an operator is known, but not the tests, the share of the migrated
        ones among all is used: it too is in (0, 1) and falls as the suite grows.
        """
        if not self.suite:
            return 1.0
        if not self.recorded:
            return len(self.places) / (len(self.places) + self.suite)
        whole = self.table.per_column(np.union1d(self.table.columns.ravel(), self.table.seeds))
        covered = np.maximum(self.table.per_column(self.table.seeds), 1)
        share: float = math.prod((covered / whole).tolist())
        return 1 - share


def operators(
    instances: Sequence[Instance], context: Context, partition: abstraction.Partition, seeded: bool
) -> Iterator[Operator]:
    """The operators in order of first occurrence.

    seeded  whether defaults and the suite's tests count as seen; a parameter's default is known from an
            instance that omits it
    """
    recorded: dict[tuple[str, str], list[Instance]] = {}
    for frontend, suite in context.suites.items():
        for test in suite.instances:
            recorded.setdefault((frontend, test.operator), []).append(test)
    places: dict[tuple[str, str], list[int]] = {}
    for place, one in enumerate(instances):
        places.setdefault((one.frontend, one.operator), []).append(place)
    for (frontend, name), held in places.items():
        own = context.suite(frontend)
        counted = 0 if own is None else own.operators.get(name, 0)
        tests = recorded.get((frontend if frontend in context.suites else "", name), [])
        rows = [partition(instances[place]) for place in held]
        seeds = [partition(test) for test in tests] if seeded else []
        defaults = _defaults([instances[place] for place in held], rows) if seeded else None
        table = tabulate(rows, seeds, defaults)
        yield Operator(frontend, name, held, table, max(counted, len(tests)), bool(seeds))


def _defaults(instances: Iterable[Instance], rows: Iterable[abstraction.Abstract]) -> dict[str, Hashable]:
    """Each parameter's abstract default, from the first instance that omits it."""
    found: dict[str, Hashable] = {}
    for one, row in zip(instances, rows, strict=True):
        left_out = {name for name, _ in one.parameters}.difference(one.explicit, found)
        found |= {name: row[name] for name in left_out if name in row and not name.startswith(OUTPUT)}
    return found


# The order

Weigh = Callable[[Operator], float]
Tie = tuple[str, int, str]


class _Queue:
    """What is left to emit of one operator: its picks, then one instance without new values.

    Scores never rise, so the operators' picks can be searched separately and merged.
    """

    def __init__(self, operator: Operator, weight: float, picks: Iterator[greedy.Pick]) -> None:
        self.operator, self.weight = operator, weight
        self._picks = picks
        self._pick: greedy.Pick | None = None
        self._emitted: set[int] = set()
        self._unit = greedy.denominator(operator.table)
        #: The instance at the head, None if none is left, and its diversity.
        self.place: int | None = None
        self.diversity = 0.0
        self.advance()

    def key(self) -> tuple[float, Tie]:
        """Sort key, lowest first. Ties are broken by the operator's name, for ONNX by index."""
        place = self.place or 0
        by_place = self.operator.frontend == "onnx"
        tie = (self.operator.frontend, place if by_place else 0, self.operator.name)
        return (-self.weight * self.diversity, tie)

    def advance(self) -> None:
        """Goes on to the next pick."""
        if self.place is not None:
            self._emitted.add(self.place)
        pick = self._pick = next(self._picks, None)
        if pick is not None:
            self.place = self.operator.places[self.operator.table.first[pick.row]]
            self.diversity = pick.score / self._unit
        else:
            self.place = next((place for place in self.operator.places if place not in self._emitted), None)
            self.diversity = 0.0

    def why(self, explain: bool) -> dict[str, Any]:
        """The evidence for the head: its operator's weight, its settings' diversity, and which are new."""
        facts = {"operator": self.weight, "diversity": self.diversity}
        explanation: dict[str, Any] = {"opera": self.weight * self.diversity} | facts
        if explain:
            names = self.operator.table.names
            new = [] if self._pick is None else np.flatnonzero(self._pick.new).tolist()
            explanation["new"] = [names[column] for column in new if column < len(names)]
            explanation["new_pairs"] = len(new) - len(explanation["new"])
        return explanation


def merge_queues(queues: Iterable[_Queue], explain: bool) -> Iterator[Ranked]:
    """The heads of all operators, best first. An operator whose first head has nothing new is left out."""
    heap = [(queue.key(), place, queue) for place, queue in enumerate(queues) if queue.diversity]
    heapify(heap)
    while heap:
        _, place, queue = heap[0]
        head, last = queue.place, not queue.diversity
        if head is not None:
            yield Ranked(head, queue.why(explain))
        if last or head is None:
            heappop(heap)
        else:
            queue.advance()
            heapreplace(heap, (queue.key(), place, queue))


def append_remaining(
    ranked: Iterable[Ranked], instances: Sequence[Instance], context: Context
) -> Iterator[Ranked]:
    """`ranked`, followed by the missing instances in random order."""
    left = dict.fromkeys(range(len(instances)))
    for one in ranked:
        del left[one.instance_index]
        yield one
    for place in shuffle(list(left), instances, context.seed):
        yield Ranked(place, _NOTHING_NEW)


_NOTHING_NEW: dict[str, Any] = {"opera": 0.0}


def _code_picks(operator: Operator, instances: Sequence[Instance], context: Context) -> Iterator[greedy.Pick]:
    """The code's picks, filtered if requested."""
    if not filter_requested(context):
        return greedy.search(operator.table, greedy.rarity_weights)
    firsts = [instances[operator.places[first]] for first in operator.table.first]
    kept = [row for row, one in enumerate(firsts) if not is_refused(one, context.backend)]
    return greedy.search(operator.table, greedy.rarity_weights, kept)


def _rank_by_code(instances: Sequence[Instance], context: Context, weigh: Weigh) -> Iterator[Ranked]:
    queues = (
        _Queue(operator, weigh(operator), _code_picks(operator, instances, context))
        for operator in operators(instances, context, abstraction.abstract_as_released_code, seeded=True)
    )
    return append_remaining(merge_queues(queues, context.explain), instances, context)


@register_strategy("opera", "opera-code")
def opera_code(instances: Sequence[Instance], context: Context) -> Iterator[Ranked]:
    """As in the code: uncovered share of the operator × diversity, a new value weighing 1/|values seen|."""
    return _rank_by_code(instances, context, lambda operator: operator.uncovered)


@register_strategy("opera-parameters")
def opera_parameters(instances: Sequence[Instance], context: Context) -> Iterator[Ranked]:
    """OPERA_para: the diversity alone."""
    return _rank_by_code(instances, context, lambda _: 1.0)


@register_strategy("opera-paper")
def opera_paper(instances: Sequence[Instance], context: Context) -> Iterator[Ranked]:
    """As in the paper: neglect of the operator × the greater share, of new values or of new pairs."""
    queues = (
        _Queue(operator, operator.neglect, greedy.search(operator.table, greedy.equal_weights))
        for operator in operators(instances, context, abstraction.abstract_as_paper, seeded=False)
    )
    return append_remaining(merge_queues(queues, context.explain), instances, context)


@register_strategy("opera-operator")
def opera_operator(instances: Sequence[Instance], context: Context) -> Iterator[Ranked]:
    """OPERA_op: the operator's weight alone, so operator by operator, each in the source's order."""
    found = list(operators(instances, context, abstraction.abstract_as_released_code, seeded=True))
    weighed = sorted((-one.uncovered, one.frontend, one.name, at) for at, one in enumerate(found))
    return (
        Ranked(place, {"opera": -weight, "operator": -weight})
        for weight, _, _, at in weighed
        for place in found[at].places
    )
