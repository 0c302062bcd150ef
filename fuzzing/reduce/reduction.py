"""A failing case made small, from its first run to the last check in a fresh process."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from fuzzing.cases import TestCase
from fuzzing.errors import UsageError
from fuzzing.execute.bench import Bench
from fuzzing.execute.shard import Shard
from fuzzing.outcomes import Outcome, Verdict
from fuzzing.reduce.engine import Budget, Reduced, Step, reduce
from fuzzing.reduce.journal import Journal
from fuzzing.reduce.judging import Showing, shows, symptom
from fuzzing.reduce.lenses import Lens, lens_of
from fuzzing.reduce.upstream import upstream
from fuzzing.triage.traits import Traits, traits_of

#: Of a root's symptom, what takes the place of its case's own.
_SYMPTOM = ("phase", "verdict", "error", "complaint", "frames")


@dataclass(frozen=True)
class Reduction:
    """What came of it.

    case       the smallest found that shows the same bug, in a fresh process too
    outcome    what it does there
    first      what the case one began with does
    before     the size of the first case
    after      the size of `case`
    reduced    how it went: runs, steps, whether it is minimal
    others     cases that show other bugs, met on the way, smallest first
    confirmed  whether the smallest one showed the bug in a fresh process; if not, `case` is the first one
    root       what is wrong by itself before that, as a case of its own, and what it does
               (`fuzzing.reduce.upstream`); None where `case` shows its bug itself
    """

    case: TestCase
    outcome: Outcome
    first: Outcome
    before: tuple[float, ...]
    after: tuple[float, ...]
    reduced: Reduced[Any]
    others: tuple[TestCase, ...]
    confirmed: bool
    root: tuple[TestCase, Outcome] | None = None

    @property
    def traits(self) -> Traits:
        """What `case` shows of its bug; those of the root, where there is one."""
        if self.root is None:
            return traits_of(self.case)
        case, outcome = self.root
        shown = symptom(outcome)
        return replace(traits_of(case), root={name: shown[name] for name in _SYMPTOM})


class Reducer:
    """Reduces cases one after the other under the settings of a shard, whose cases and corpus do not matter.

    A context manager: compilers and libraries are imported once for all cases, and their workers end with it.

    passing  the settings of another toolchain, on which the cases pass and what is left of them must pass too
    """

    def __init__(self, shard: Shard, budget: Budget | None = None, passing: Shard | None = None) -> None:
        self._shard = shard
        self._budget = budget
        self._open = contextlib.ExitStack()
        self._bench = self._open.enter_context(Bench(shard))
        self._fresh = self._open.enter_context(Bench(replace(shard, fresh=True), beside=self._bench))
        self._passing = None if passing is None else self._open.enter_context(Bench(passing))

    def __enter__(self) -> Reducer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.__exit__(kind, error, trace)

    @property
    def configuration(self) -> str:
        """That of the outcomes: options and profile that are not the default."""
        return self._bench.configuration

    def outcomes(self, cases: Sequence[TestCase]) -> list[Outcome]:
        """What cases do before they are reduced."""
        return self._bench.outcomes(cases)

    def reduce(
        self,
        case: TestCase,
        first: Outcome | None = None,
        *,
        journal: Path | None = None,
        progress: Callable[[Step], None] | None = None,
    ) -> Reduction:
        """Makes `case` small; `first` is what it did, if that is known.

        Raises UsageError if the case does not fail, or not in the same way twice.
        """
        begin = time.monotonic()
        found = self._small(case, first, journal, progress)
        return self._upstream(found, journal, begin) if found.confirmed else found

    def _small(
        self,
        case: TestCase,
        first: Outcome | None,
        journal: Path | None,
        progress: Callable[[Step], None] | None,
    ) -> Reduction:
        """The smallest case found that shows what `case` does."""
        lens = lens_of(case.program.kind)
        if first is None:
            [first] = self._bench.outcomes([case])
        [again] = self._bench.outcomes([case])
        _check(case, first, again)
        wanted = symptom(first)
        start = lens.load(case, self._bench, first)
        reduced = self._reduced(start, lens, wanted, self._budget, journal, progress)
        small = _derived(lens.case(reduced.best), case)
        [outcome] = self._fresh.outcomes([small])
        confirmed = shows(outcome, wanted)
        others = tuple(_derived(lens.case(other), case) for other in reduced.others)
        before = lens.format.size(start)
        best, shown, after = (
            (small, outcome, lens.format.size(reduced.best)) if confirmed else (case, first, before)
        )
        return Reduction(best, shown, first, before, after, reduced, others, confirmed)

    def _reduced(
        self,
        start: Any,
        lens: Lens[Any],
        wanted: dict[str, Any],
        budget: Budget | None,
        journal: Path | None,
        progress: Callable[[Step], None] | None,
    ) -> Reduced[Any]:
        return reduce(
            start,
            lens.format,
            Showing(self._bench, wanted, lens.case, self._passing),
            budget=budget,
            width=self._shard.workers,
            journal=Journal(journal),
            progress=progress,
        )

    def _upstream(
        self,
        found: Reduction,
        journal: Path | None,
        begin: float,
    ) -> Reduction:
        """The reduction with its root, made small in what is left of the budget, if it has one.

        A quarter of the time is always left for it: what was found late would be told with all around it.
        """
        lens, done, asked = lens_of(found.case.program.kind), found.reduced, 0

        def run(one: TestCase) -> Outcome:
            nonlocal asked
            asked += 1
            return self._bench.outcomes([one])[0]

        if lens.parts(done.best) < 2:
            return found
        # Taken apart anew: what the library gives inside has changed with the inputs.
        there = upstream(lens.load(found.case, self._bench, found.outcome), lens, run)
        if there is None or not self._new(lens.case(there[0])):
            return found
        start, first = there
        wanted, budget = symptom(first), self._budget or Budget()
        seconds = max(budget.seconds - (time.monotonic() - begin), budget.seconds / 4)
        left = Budget(max(budget.runs - done.runs - asked, 0), seconds)
        another = None if journal is None else journal.with_suffix(".upstream.jsonl")
        more = self._reduced(start, lens, wanted, left, another, None)
        small = _derived(lens.case(more.best), found.case)
        [outcome] = self._fresh.outcomes([small])
        if not shows(outcome, wanted):
            return found
        spent = Counter(done.spent) + Counter(upstream=asked + more.runs)
        runs, replayed = done.runs + asked + more.runs, done.replayed + more.replayed
        others = tuple(one for one in found.others if one.id != small.id)
        counted = replace(done, runs=runs, replayed=replayed, spent=spent)
        return replace(found, reduced=counted, others=others, root=(small, outcome))

    def _new(self, case: TestCase) -> bool:
        """Whether a case passes where what is new must."""
        return self._passing is None or self._passing.outcomes([case])[0].verdict is Verdict.PASS


def reduce_case(
    case: TestCase,
    shard: Shard,
    *,
    budget: Budget | None = None,
    journal: Path | None = None,
    progress: Callable[[Step], None] | None = None,
    passing: Shard | None = None,
) -> Reduction:
    """Makes one case small; see `Reducer`."""
    with Reducer(shard, budget, passing) as reducer:
        return reducer.reduce(case, journal=journal, progress=progress)


def _check(case: TestCase, first: Outcome, again: Outcome) -> None:
    name = case.id[:16]
    if not first.verdict.accuses:
        raise UsageError(
            f"case {name} does not fail on {first.backend}: {first.verdict.value} ({first.summary}); "
            "there is nothing to reduce"
        )
    if symptom(first) != symptom(again):
        raise UsageError(
            f"case {name} fails in one way and then in another ({first.summary}; {again.summary}); "
            "what does not repeat cannot be reduced"
        )


def _derived(case: TestCase, origin: TestCase) -> TestCase:
    """The case, saying that it was made from another."""
    given = origin.provenance
    test = given.test if "reduced" in given.test else f"{given.test} (reduced)"
    return replace(case, provenance=replace(given, test=test))
