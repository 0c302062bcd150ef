"""Many failing cases made small on one bench: compilers and libraries are imported once, not once a case."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType

from fuzzing.cases import TestCase
from fuzzing.errors import UsageError
from fuzzing.execute.bench import Bench
from fuzzing.execute.shard import Shard
from fuzzing.outcomes import Outcome
from fuzzing.reduce.engine import Budget, Step, reduce
from fuzzing.reduce.journal import Journal
from fuzzing.reduce.judging import Showing, shows, symptom
from fuzzing.reduce.lenses import lens_of


@dataclass(frozen=True)
class Small:
    """What is left of a failing case.

    case     the smallest found, or the case one began with where nothing smaller held
    outcome  what it does
    reduced  whether it is what a reduction left, confirmed in a fresh process
    runs     candidates that were run; `replayed` were known from an earlier try
    why_not  why it is not reduced; "" if it is
    """

    case: TestCase
    outcome: Outcome
    reduced: bool
    runs: int = 0
    replayed: int = 0
    why_not: str = ""


class Reducer:
    """Reduces cases one after the other under the settings of a shard; a context manager.

    `shard.corpus` and `shard.cases` do not matter.
    """

    def __init__(self, shard: Shard, budget: Budget | None = None) -> None:
        self._shard = shard
        self._budget = budget or Budget()
        self._open = contextlib.ExitStack()
        self._bench = self._open.enter_context(Bench(shard))
        self._fresh = self._open.enter_context(Bench(replace(shard, fresh=True)))

    def __enter__(self) -> Reducer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.__exit__(kind, error, trace)

    def outcomes(self, cases: Sequence[TestCase]) -> list[Outcome]:
        """What cases do before they are reduced."""
        return self._bench.outcomes(cases)

    def reduce(
        self,
        case: TestCase,
        first: Outcome,
        journal: Path | None = None,
        progress: Callable[[Step], None] | None = None,
    ) -> Small:
        """Makes `case`, which did `first`, small; what cannot be reduced stays as it is and says why."""
        [again] = self._bench.outcomes([case])
        if symptom(first) != symptom(again):
            return Small(case, first, False, why_not=f"it fails differently each time: {again.summary}")
        try:
            lens = lens_of(case.program.kind)
            start = lens.load(case, self._bench, first)
        except UsageError as error:
            return Small(case, first, False, why_not=str(error))
        wanted = symptom(first)
        judge = Showing(self._bench, wanted, lens.case)
        kept = Journal(journal)
        found = reduce(
            start,
            lens.format,
            judge,
            budget=self._budget,
            width=self._shard.workers,
            journal=kept,
            progress=progress,
        )
        small = lens.case(found.best)
        [outcome] = self._fresh.outcomes([small])
        if not shows(outcome, wanted):
            why = "the smallest one did not fail in a fresh process"
            return Small(case, first, False, found.runs, found.replayed, why)
        return Small(small, outcome, True, found.runs, found.replayed)
