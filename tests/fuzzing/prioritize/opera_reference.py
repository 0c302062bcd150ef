"""OPERA's orders computed the plain way: every score of every instance anew after every emission."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import combinations
from typing import Any

from fuzzing.prioritize.abstraction import abstract_as_paper, abstract_as_released_code
from fuzzing.prioritize.greedy import UNIT
from fuzzing.prioritize.instances import Instance
from fuzzing.prioritize.opera_filter import is_refused
from fuzzing.prioritize.strategies import Context, shuffle

Seen = dict[Hashable, set[Hashable]]


class PlainOperator:
    """One operator's instances, and what was seen of it."""

    def __init__(self, instances: Sequence[Instance], places: list[int], context: Context, mode: str) -> None:
        partition = abstract_as_released_code if mode == "code" else abstract_as_paper
        first = instances[places[0]]
        suite = context.suite(first.frontend)
        tests = [] if suite is None else [one for one in suite.instances if one.operator == first.operator]
        self.rows: dict[int, dict[str, Any]] = {place: partition(instances[place]) for place in places}
        seeds = [partition(test) for test in tests] if mode == "code" else []
        every = [*self.rows.values(), *seeds]
        self.names = list(dict.fromkeys(name for row in every for name in row)) or [""]
        self.mode, self.name, self.frontend = mode, first.operator, first.frontend
        self.seen: Seen = {}
        for seed in seeds:
            self.see(self.columns(seed))
        if mode == "code":
            self.see(self.columns(self._defaults(instances, places), partial=True))
        self.covered = {column: len(values) for column, values in self.seen.items()}
        self.left = list(places)
        self.is_refused = {
            p
            for p in places
            if mode == "code" and context.options and is_refused(instances[p], context.backend)
        }
        counted = 0 if suite is None else suite.operators.get(self.name, 0)
        self.weight = self._weight(max(counted, len(tests)), bool(seeds))

    def _defaults(self, instances: Sequence[Instance], places: list[int]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for place in places:
            for name, _ in instances[place].parameters:
                if name not in instances[place].explicit and name in self.rows[place]:
                    found.setdefault(name, self.rows[place][name])
        return found

    def _weight(self, tested: int, recorded: bool) -> float:
        if self.mode == "paper":
            return len(self.rows) / max(tested, 0.5)
        if not tested:
            return 1.0
        if not recorded:
            return len(self.rows) / (len(self.rows) + tested)
        whole = {column: set(values) for column, values in self.seen.items()}
        for row in self.rows.values():
            for column, value in self.columns(row).items():
                whole.setdefault(column, set()).add(value)
        product = 1.0
        for column in [*self.names, *combinations(self.names, 2)]:
            product *= max(self.covered.get(column, 0), 1) / len(whole[column])
        return 1 - product

    def columns(self, row: dict[str, Any], partial: bool = False) -> dict[Hashable, Hashable]:
        values = {name: row.get(name, ("absent",)) for name in self.names if name in row or not partial}
        pairs = {
            (p, q): (values[p], values[q])
            for p, q in combinations(self.names, 2)
            if p in values and q in values
        }
        found: dict[Hashable, Hashable] = {}
        found.update(values)
        found.update(pairs)
        return found

    def see(self, columns: dict[Hashable, Hashable]) -> None:
        for column, value in columns.items():
            self.seen.setdefault(column, set()).add(value)

    def score(self, place: int) -> float:
        if place in self.is_refused:
            return 0.0
        single = pair = 0
        for column, value in self.columns(self.rows[place]).items():
            seen = self.seen.get(column, set())
            worth = UNIT // max(len(seen), 1) if self.mode == "code" else UNIT
            if value not in seen:
                single += worth * isinstance(column, str)
                pair += worth * isinstance(column, tuple)
        count = len(self.names)
        whole = max(single * (count - 1), 2 * pair) if count > 1 else single
        return whole / (UNIT * max(count * (count - 1), 1))

    def best(self) -> tuple[float, int]:
        scores = [(-self.score(place), place) for place in self.left]
        score, place = min(scores)
        return -score, place


def plain_order(instances: Sequence[Instance], context: Context, mode: str) -> list[int]:
    """The order, as 1.5 ("paper") or 1.6 ("code") says."""
    groups: dict[tuple[str, str], list[int]] = {}
    for place, one in enumerate(instances):
        groups.setdefault((one.frontend, one.operator), []).append(place)
    every = [PlainOperator(instances, places, context, mode) for places in groups.values()]
    live = [operator for operator in every if operator.best()[0] > 0]
    emitted: list[int] = []
    while live:
        heads = []
        for at, operator in enumerate(live):
            score, place = operator.best()
            tie = (operator.frontend, place if operator.frontend == "onnx" else 0, operator.name)
            heads.append((-operator.weight * score, tie, at, place, score))
        _, _, at, place, score = min(heads)
        operator = live[at]
        emitted.append(place)
        operator.see(operator.columns(operator.rows[place]))
        operator.left.remove(place)
        if score == 0 or not operator.left:
            live.remove(operator)
    rest = [place for place in range(len(instances)) if place not in set(emitted)]
    return emitted + shuffle(rest, instances, context.seed)
