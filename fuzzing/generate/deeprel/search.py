"""The DeepREL loop: candidates, pairs, new cases, round by round until nothing new is covered.

Calls run in a worker process with limits, and a crash is attributed to the call in progress. Pairs are
reported in a fixed order, independent of the order in which they end.
"""

from __future__ import annotations

import sys
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from fuzzing.cases import TestCase, TorchCall
from fuzzing.errors import InternalError
from fuzzing.execute.limits import Limits
from fuzzing.execute.supervisor import Supervisor
from fuzzing.execute.worker_command import WorkerCommand
from fuzzing.generate.deeprel.api_inventory import canonical_name, list_apis
from fuzzing.generate.deeprel.api_pairs import (
    AcceptedCall,
    ApiPair,
    CaseRequest,
    ExecutionHandler,
    Inconsistency,
    LibraryBug,
    SourceRuns,
    digest,
)
from fuzzing.generate.deeprel.call_transfer import Invocation, bind_case
from fuzzing.generate.deeprel.similarity import CANDIDATES, find_candidates
from fuzzing.generate.deeprel.verification import Equivalence, Outcome

#: Wall-clock seconds and bytes for one call: those of libraries' own tests take milliseconds.
LIMITS = Limits(convert_s=10.0, run_s=10.0, memory_bytes=3 << 30)
#: What these give is whatever lay in memory, so only types and shapes of it can be compared.
_UNINITIALIZED = ("empty", "new_empty", "resize_", "resize_as_")


@dataclass(frozen=True)
class SearchSettings:
    """Limits of a search.

    candidates   targets tried for each source; rounds: at most; invocations: replayed for each pair
                 (all three as in DeepREL's released demo.conf and driver)
    borrowed_calls  calls tried with an API of a later round, taken from those tried with others
    mutants, seed  mutated calls run of each pair that holds, and their seed
    pair_cases, target_cases  new cases kept of one pair, and of one target API: similar APIs yield the same
                 inputs again and again
    """

    candidates: int = CANDIDATES
    rounds: int = 10
    invocations: int = 100
    borrowed_calls: int = 24
    mutants: int = 0
    seed: int = 0
    pair_cases: int = 10
    target_cases: int = 60


@dataclass(frozen=True)
class Relation:
    """A pair that was tried.

    equivalence  None if the pair does not hold
    tried        calls run on both; held: how many of them show the equivalence
    round        in which it was found, from 0
    """

    source: str
    target: str
    similarity: float
    equivalence: Equivalence | None
    tried: int
    held: int
    round: int


@dataclass
class SearchTotals:
    """Counts of a search.

    candidates  similar pairs of APIs; pairs: those with a call that could be run on both
    unstable    calls left out because two runs of them differ
    """

    sources: int = 0
    seeds: int = 0
    candidates: int = 0
    pairs: int = 0
    equivalent: Counter[str] = field(default_factory=Counter)
    cases: int = 0
    covered: set[str] = field(default_factory=set)
    newly_covered: set[str] = field(default_factory=set)
    unstable: int = 0
    bugs: int = 0
    inconsistencies: int = 0
    executions: int = 0
    rounds: int = 0

    def text(self) -> str:
        """The figures in a few lines."""
        return (
            f"{self.seeds} recorded calls of {self.sources} APIs; {self.candidates} candidate pairs, "
            f"{self.pairs} of them run ({self.executions} calls)\n"
            f"verified: {self.equivalent['value']} by value, {self.equivalent['status']} by status, "
            f"in {self.rounds} rounds\n"
            f"{self.cases} new cases; {len(self.newly_covered)} APIs newly covered; "
            f"{self.unstable} calls left out as unstable; {self.bugs} ended in the library's own bugs; "
            f"{self.inconsistencies} mutated calls on which a pair differs"
        )


Item = Relation | TestCase | LibraryBug | Inconsistency


class Search:
    """DeepREL over recorded calls of torch.

    seeds          the recorded cases; calls of no API in the inventory are skipped
    source_filter  selects the source APIs of the pairs that are tried, in every round; all if None
    covered        further APIs with recorded calls
    backend        runs the calls
    """

    def __init__(
        self,
        seeds: Iterable[TestCase],
        settings: SearchSettings | None = None,
        *,
        source_filter: Callable[[str], bool] | None = None,
        covered: Collection[str] = (),
        backend: str = "torch_eager",
    ) -> None:
        self.settings = settings or SearchSettings()
        self.totals = SearchTotals()
        self._source_filter = source_filter or _accept_all
        self._command = WorkerCommand(sys.executable, backend, limits=LIMITS)
        self._calls: dict[str, list[Invocation]] = {}
        self._known: set[str] = set()
        self._kept: Counter[str] = Counter()
        for case in seeds:
            self._record(case)
        self.totals.sources = len(self._calls)
        self.totals.covered = {*self._calls, *covered}

    def _record(self, case: TestCase) -> None:
        call = case.program
        name = canonical_name(call.api) if isinstance(call, TorchCall) else ""
        found = bind_case(list_apis()[name], case) if name else None
        if found is None:
            return
        self.totals.seeds += 1
        self._known.add(
            found.case("").id
        )  # in our spelling; the recorded one is in that spelling or never met
        calls = self._calls.setdefault(name, [])
        if len(calls) < self.settings.invocations:
            calls.append(found)

    def run(self) -> Iterator[Item]:
        """Relations, new cases and bugs, in an order that depends only on the seeds."""
        import torch

        torch.set_num_threads(
            1
        )  # on a busy machine, threads that wait for one another cost twenty times more
        calls = self._calls
        tried: set[tuple[str, str]] = set()
        while calls and self.totals.rounds < self.settings.rounds:
            reached: dict[str, dict[str, Invocation]] = {}
            calls = {name: found for name, found in sorted(calls.items()) if self._source_filter(name)}
            for pair in _run_in_order(self._command, self._pairs(calls, tried), self.totals):
                yield from self._finish_pair(pair, reached)
            self.totals.rounds += 1
            calls = {
                name: _pick_evenly([*some.values()], self.settings.borrowed_calls)
                for name, some in reached.items()
            }

    def _pairs(self, calls: dict[str, list[Invocation]], tried: set[tuple[str, str]]) -> Iterator[ApiPair]:
        apis = list_apis()
        found = find_candidates([apis[name] for name in calls], list(apis.values()), self.settings.candidates)
        for name, some in calls.items():
            runs = SourceRuns(apis[name], some)
            for candidate in found[name]:
                key = name, candidate.api.name
                if key not in tried:
                    tried.add(key)
                    self.totals.candidates += 1
                    yield ApiPair(
                        runs, candidate.api, candidate.similarity, self.settings.mutants, self.settings.seed
                    )

    def _finish_pair(self, pair: ApiPair, reached: dict[str, dict[str, Invocation]]) -> Iterator[Item]:
        """A finished pair: its relation, the library's bugs, and its new cases.

        reached  the calls of APIs that this round is the first to cover, by id; the pair's are added
        """
        if not pair.tried:
            return
        self.totals.pairs += 1
        self.totals.bugs += len(pair.bugs)
        equivalence = pair.equivalence
        yield _relation(pair, self.totals.rounds)
        yield from pair.bugs
        self.totals.inconsistencies += len(pair.inconsistencies)
        yield from pair.inconsistencies
        if equivalence is None:
            return
        self.totals.equivalent[equivalence] += 1
        target = pair.target.name
        if target not in self.totals.covered:
            self.totals.covered.add(target)
            self.totals.newly_covered.add(target)
            reached[target] = {}
        if target in reached:
            reached[target].update({accepted.case.id: accepted.call for accepted in pair.accepted})
        for case in self._new_cases(pair):
            self.totals.cases += 1
            yield case

    def _new_cases(self, pair: ApiPair) -> Iterator[TestCase]:
        """The pair's share of new cases, evenly from its calls, each run twice with equal results."""
        capacity = min(self.settings.pair_cases, self.settings.target_cases - self._kept[pair.target.name])
        if capacity <= 0:
            return
        fresh = {accepted.case.id: accepted for accepted in pair.accepted}
        unknown = [accepted for name, accepted in fresh.items() if name not in self._known]
        for accepted in _pick_evenly(unknown, capacity):
            self._known.add(accepted.case.id)
            case = _with_comparison(accepted)
            if case is None:
                self.totals.unstable += 1
            else:
                self._kept[pair.target.name] += 1
                yield case


def _accept_all(_name: str) -> bool:
    return True


def _relation(pair: ApiPair, number: int) -> Relation:
    equivalence = pair.equivalence
    held = pair.outcomes[equivalence or "status"][Outcome.SUCCESS]
    return Relation(
        pair.source.name, pair.target.name, pair.similarity, equivalence, pair.tried, held, number
    )


T = TypeVar("T")


def _pick_evenly(items: Sequence[T], count: int) -> list[T]:
    if len(items) <= count:
        return list(items)
    return [items[place * len(items) // count] for place in range(max(0, count))]


def _with_comparison(accepted: AcceptedCall) -> TestCase | None:
    """The case with its comparison mode; None if this run differs from the worker's."""
    from fuzzing.torch_api.samples import observe_case

    case = accepted.case
    try:
        seen = observe_case(case)
    except InternalError:
        raise
    except Exception:  # noqa: BLE001 - whatever torch raises, on a call that it has accepted once
        return None
    unwritten = accepted.call.api.name.rsplit(".", 1)[-1].startswith(_UNINITIALIZED)
    loose = seen.random or unwritten or accepted.call.origin.comparison == "shapes"
    if not loose and digest(tuple(seen.outputs)) != accepted.digest:
        return None
    return replace(case, comparison="shapes" if loose else "values")


# Running -------------------------------------------------------------------------------------------------


class _RequestQueue:
    """Jobs in progress first, then those of the next pair.

    An iterator that may continue after it was empty: a pair's next calls are known only when its last have
    ended, and the supervisor polls whenever a worker has room.
    """

    def __init__(self, pairs: Iterator[ApiPair]) -> None:
        self._pairs = pairs
        self.ready: deque[CaseRequest] = deque()
        self.begun: deque[ApiPair] = deque()

    def __iter__(self) -> _RequestQueue:
        return self

    def __next__(self) -> CaseRequest:
        while not self.ready:
            pair = next(self._pairs)
            self.begun.append(pair)
            self.ready.extend(pair.begin())
        return self.ready.popleft()


def _run_in_order(
    command: WorkerCommand, pairs: Iterator[ApiPair], totals: SearchTotals
) -> Iterator[ApiPair]:
    queue = _RequestQueue(pairs)
    exhausted = False
    while not exhausted:
        exhausted = True
        supervisor: Supervisor[tuple[ExecutionHandler, int]] = Supervisor(command)
        for (taker, place), execution in supervisor.run(queue):
            exhausted = False
            totals.executions += 1
            queue.ready.extend(taker.handle(place, execution))
            while queue.begun and queue.begun[0].ended:
                yield queue.begun.popleft()
        while queue.begun and queue.begun[0].ended:
            yield queue.begun.popleft()
    if queue.begun:
        raise InternalError(f"{len(queue.begun)} pairs have not ended, though nothing is left to run")
