"""OPERA's ranking (ICSE 2025): neglected operators first, and of each the settings not yet covered.

Four strategies: `opera` (= `opera-code`) computes what the released code computes, without its mistakes,
which `opera_released` adds; `opera-paper` what the paper defines; `opera-operator` and `opera-parameters` the
code's two factors alone. docs/prioritization.md lists where they differ and what they leave open.
"""

from __future__ import annotations

import math
import os
from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np

from fuzzing.prioritize import abstraction, greedy
from fuzzing.prioritize.call_binding import OUTPUT
from fuzzing.prioritize.codes import Array
from fuzzing.prioritize.instances import Instance
from fuzzing.prioritize.opera_filter import filter_requested, is_refused
from fuzzing.prioritize.strategies import Context, Ranked, register_strategy, shuffle
from fuzzing.prioritize.table import Table, tabulate_instances
from fuzzing.process_pool import map_in_processes

#: Count of an operator that the compiler's own suite lacks: the paper divides by the number of tests there
#: and does not define the result for 0.
NEVER_TESTED = 0.5


@dataclass(frozen=True)
class Operator:
    """The instances of one operator, abstracted.

    places  indices of the instances, ascending
    suite   number of tests of the operator in the compiler's own suite; 0 too if they were not counted
    kept    the rows of the table to rank, ascending; None for all
    """

    frontend: str
    name: str
    places: list[int]
    table: Table
    suite: int
    recorded: bool
    kept: Sequence[int] | None = None

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
        whole = self.table.per_column(np.append(self.table.columns.ravel(), self.table.seeds))
        covered = np.maximum(self.table.per_column(self.table.seeds), 1)
        share: float = math.prod((covered / whole).tolist())
        return 1 - share


@dataclass(frozen=True)
class Group:
    """The instances of one operator.

    places   their indices, ascending
    tests    the recorded tests of the operator in the compiler's own suite
    counted  the number of those tests, recorded or not
    """

    frontend: str
    name: str
    places: list[int]
    tests: list[Instance]
    counted: int

    def abstracted(self, table: Table, recorded: bool) -> Operator:
        """The operator with `table`; `recorded` is whether the suite's tests are in it."""
        return Operator(self.frontend, self.name, self.places, table, self.counted, recorded)


def group_by_operator(instances: Sequence[Instance], context: Context) -> Iterator[Group]:
    """The operators in order of first occurrence."""
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
        yield Group(frontend, name, held, tests, max(counted, len(tests)))


def operators(
    instances: Sequence[Instance], context: Context, partition: abstraction.Partition, seeded: bool
) -> Iterator[Operator]:
    """The operators in order of first occurrence.

    seeded  whether defaults and the suite's tests count as seen; a parameter's default is known from an
            instance that omits it
    """
    for group in group_by_operator(instances, context):
        rows, tests = (instances[place] for place in group.places), group.tests if seeded else []
        yield group.abstracted(tabulate_instances(rows, tests, partition, seeded), bool(tests))


def find_defaults(instances: Iterable[Instance], rows: Iterable[abstraction.Abstract]) -> dict[str, Hashable]:
    """Each parameter's abstract default, from the first instance that omits it."""
    found: dict[str, Hashable] = {}
    for one, row in zip(instances, rows, strict=True):
        left_out = {name for name, _ in one.parameters}.difference(one.explicit, found)
        found |= {name: row[name] for name in left_out if name in row and not name.startswith(OUTPUT)}
    return found


# The order

Weigh = Callable[[Operator], float]
#: The picks of an operator: (operator, whether to explain them)
Search = Callable[[Operator, bool], Iterable[greedy.Pick]]
#: With fewer instances the start of processes would take as long as the search, some 3 s.
PARALLEL = 100_000
_CHUNK = 4096  # instances of a merged order that are made at once
_AHEAD = 16  # tables in flight for each process; the largest have some 10 MB


@dataclass(frozen=True)
class Queue:
    """The order within one operator: its picks, then one instance without new values, if one is left.

    Scores never rise, so the operators' picks can be searched separately and merged.

    places     int64 [length]: indices of the instances
    diversity  float64 [length]: of their settings
    new        names of the parameters and number of the pairs with new values, of each; empty if not asked
    """

    frontend: str
    name: str
    weight: float
    places: Array
    diversity: Array
    new: Sequence[tuple[list[str], int]] = ()

    def ties(self) -> Array:
        """What breaks ties with other operators before their names: for ONNX the index, int64 [length].

        An instance is not before those of its own operator that precede it.
        """
        if self.frontend != "onnx" or not len(self.places):
            return np.zeros_like(self.places)
        scores = self.weight * self.diversity
        run = np.cumsum(np.diff(scores, prepend=scores[0]) != 0) * (int(self.places.max()) + 1)
        ties: Array = np.maximum.accumulate(self.places + run) - run
        return ties

    def why(self, at: int) -> dict[str, Any]:
        """The evidence: the operator's weight, the settings' diversity, and which are new."""
        weight, diversity = self.weight, float(self.diversity[at])
        explanation: dict[str, Any] = {
            "opera": weight * diversity,
            "operator": weight,
            "diversity": diversity,
        }
        if self.new:
            explanation["new"], explanation["new_pairs"] = self.new[at]
        return explanation


def line_up(operator: Operator, weight: float, picks: Iterable[greedy.Pick], explain: bool) -> Queue:
    """The queue of an operator; empty if its first instance has nothing new."""
    table = operator.table
    rows, scores = array("q"), array("d")
    new: list[tuple[list[str], int]] = []
    for pick in picks:
        rows.append(pick.row)
        scores.append(pick.score)
        if pick.new is not None:
            columns = np.flatnonzero(pick.new).tolist()
            names = [table.names[column] for column in columns if column < len(table.names)]
            new.append((names, len(columns) - len(names)))
    places = np.array(operator.places)[np.array(table.first)[rows]]
    diversity = np.array(scores) / greedy.denominator(table)
    left = np.setdiff1d(operator.places, places)[:1] if len(rows) else places
    if explain:
        new += [([], 0)] * len(left)
    places, diversity = np.append(places, left), np.append(diversity, np.zeros(len(left)))
    return Queue(operator.frontend, operator.name, weight, places, diversity, new)


def merge_queues(queues: Sequence[Queue]) -> Iterator[Ranked]:
    """The instances of all operators, best first. Ties go by frontend, for ONNX by index, and by name."""
    frontends, names = (
        {text: rank for rank, text in enumerate(sorted(texts))}
        for texts in ({one.frontend for one in queues}, {one.name for one in queues})
    )
    lengths = [len(one.places) for one in queues]
    if not sum(lengths):
        return
    order = np.lexsort(
        [
            np.repeat(np.arange(len(queues)), lengths),
            np.repeat([names[one.name] for one in queues], lengths),
            np.concatenate([one.ties() for one in queues]),
            np.repeat([frontends[one.frontend] for one in queues], lengths),
            np.concatenate([-one.weight * one.diversity for one in queues]),
        ]
    )
    starts = np.cumsum([0, *lengths])
    places = np.concatenate([one.places for one in queues])
    for begin in range(0, len(order), _CHUNK):
        part = order[begin : begin + _CHUNK]
        which = np.searchsorted(starts, part, "right") - 1
        ranked = zip(places[part].tolist(), which.tolist(), (part - starts[which]).tolist(), strict=True)
        yield from [Ranked(place, queues[queue].why(at)) for place, queue, at in ranked]


def append_remaining(
    ranked: Iterable[Ranked], instances: Sequence[Instance], context: Context
) -> Iterator[Ranked]:
    """`ranked`, followed by the missing instances in random order."""
    left = np.ones(len(instances), np.bool_)
    for one in ranked:
        left[one.instance_index] = False
        yield one
    for place in shuffle(np.flatnonzero(left).tolist(), instances, context.seed):
        yield Ranked(place, NOTHING_NEW)


NOTHING_NEW: dict[str, Any] = {"opera": 0.0}


def line_up_all(
    operators: Iterable[Operator], weigh: Weigh, search: Search, count: int, explain: bool
) -> list[Queue]:
    """The queues of operators with `count` instances in all; of many instances by several processes.

    Tables are made here: they need the instances, which would have to be copied for other processes.

    weigh, search  can be pickled
    """
    processes = 1 if count < PARALLEL else len(os.sched_getaffinity(0))
    line = partial(_line_up_operator, weigh, search, explain)
    died = "a process that searches an operator's instances died, perhaps for lack of memory"
    return list(map_in_processes(line, operators, processes, died, _AHEAD))


def _line_up_operator(weigh: Weigh, search: Search, explain: bool, operator: Operator) -> Queue:
    return line_up(operator, weigh(operator), search(operator, explain), explain)


def code_picks(operator: Operator, explain: bool) -> Iterator[greedy.Pick]:
    """The picks of the released code: a new value weighs 1/|values seen|."""
    return greedy.search(operator.table, greedy.rarity_weights, operator.kept, explain)


def _paper_picks(operator: Operator, explain: bool) -> Iterator[greedy.Pick]:
    return greedy.search(operator.table, greedy.equal_weights, explain=explain)


def _equally(_: Operator) -> float:
    return 1.0


def without_refused(operator: Operator, instances: Sequence[Instance], backend: str) -> Operator:
    """The operator without the rows that the released code refuses for a backend."""
    firsts = [instances[operator.places[first]] for first in operator.table.first]
    return replace(operator, kept=[row for row, one in enumerate(firsts) if not is_refused(one, backend)])


def _rank_by_code(instances: Sequence[Instance], context: Context, weigh: Weigh) -> Iterator[Ranked]:
    found = operators(instances, context, abstraction.partition_of_released_code, seeded=True)
    if filter_requested(context):
        found = (without_refused(one, instances, context.backend) for one in found)
    queues = line_up_all(found, weigh, code_picks, len(instances), context.explain)
    return append_remaining(merge_queues(queues), instances, context)


@register_strategy("opera", "opera-code")
def opera_code(instances: Sequence[Instance], context: Context) -> Iterator[Ranked]:
    """As in the code: uncovered share of the operator × diversity, a new value weighing 1/|values seen|."""
    return _rank_by_code(instances, context, attrgetter("uncovered"))


@register_strategy("opera-parameters")
def opera_parameters(instances: Sequence[Instance], context: Context) -> Iterator[Ranked]:
    """OPERA_para: the diversity alone."""
    return _rank_by_code(instances, context, _equally)


@register_strategy("opera-paper")
def opera_paper(instances: Sequence[Instance], context: Context) -> Iterator[Ranked]:
    """As in the paper: neglect of the operator × the greater share, of new values or of new pairs."""
    found = operators(instances, context, abstraction.partition_of_paper, seeded=False)
    queues = line_up_all(found, attrgetter("neglect"), _paper_picks, len(instances), context.explain)
    return append_remaining(merge_queues(queues), instances, context)


@register_strategy("opera-operator")
def opera_operator(instances: Sequence[Instance], context: Context) -> Iterator[Ranked]:
    """OPERA_op: the operator's weight alone, so operator by operator, each in the source's order."""
    found = operators(instances, context, abstraction.partition_of_released_code, seeded=True)
    weighed = sorted((-one.uncovered, one.frontend, one.name, one.places) for one in found)
    return (
        Ranked(place, {"opera": -weight, "operator": -weight})
        for weight, _, _, places in weighed
        for place in places
    )
