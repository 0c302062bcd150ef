"""Reduces a failing case, from its first run to the confirmation in a fresh process."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from fuzzing.cases import TestCase
from fuzzing.errors import UsageError
from fuzzing.execute.evaluator import Evaluator
from fuzzing.execute.shard import Shard
from fuzzing.outcomes import Outcome, Verdict
from fuzzing.reduce.engine import Budget, SearchResult, Step, reduce
from fuzzing.reduce.formats import ProgramFormat, get_format
from fuzzing.reduce.journal import Journal
from fuzzing.reduce.root_cause import find_root_cause
from fuzzing.reduce.symptom_check import SymptomClassifier, has_symptom, symptom_of
from fuzzing.triage.traits import Traits, read_traits

#: The part of the time limits that a candidate of a hang gets: of the default ones 15 s to compile. Two of
#: 34,500 compilations in databases of our campaigns took longer and ended. The smallest candidate hangs under
#: the whole limits too, or there is no reduction.
HANG_SEARCH = 1 / 4
#: Fields of a root's symptom that replace those of its case.
_SYMPTOM = ("phase", "verdict", "error", "complaint", "frames")


@dataclass(frozen=True)
class Reduction:
    """Result of a reduction.

    case       the smallest found with the same bug that shows it in a fresh process
    outcome    of `case` there
    first      outcome of the original case
    before     size of the original case
    after      size of `case`
    reduced    the search: runs, steps, whether `case` is minimal
    others     cases with other bugs, smallest first
    confirmed  whether one of those tried had the bug in a fresh process; if not, `case` is the original one
    root       a part of the program that is wrong by itself, as a case of its own, and its outcome
               (`fuzzing.reduce.root_cause`); None if `case` itself has the bug
    """

    case: TestCase
    outcome: Outcome
    first: Outcome
    before: tuple[float, ...]
    after: tuple[float, ...]
    reduced: SearchResult[Any]
    others: tuple[TestCase, ...]
    confirmed: bool
    root: tuple[TestCase, Outcome] | None = None

    @property
    def traits(self) -> Traits:
        """Traits of `case`; those of the root, if it is a part of its text. A search that did not end proves
        nothing.
        """
        if self.root is None:
            found = read_traits(self.case)
            return found if self.reduced.minimal else found.unproven()
        case, outcome = self.root
        shown, inner = symptom_of(outcome), read_traits(case)
        root = {name: shown[name] for name in _SYMPTOM}
        if case.program.kind == self.case.program.kind:
            return replace(inner.unproven(), root=root)
        # A part of what the library makes of a call: other failures of that call are known by its name.
        root |= {"operator": inner.pattern, "dtypes": list(inner.dtypes), "needs": list(inner.needs)}
        return replace(read_traits(self.case).unproven(), root=root)


class Reducer:
    """Reduces cases one after the other with the settings of a shard, whose cases and corpus are unused.

    A context manager: compilers and libraries are imported once for all cases, and their workers end with it.
    Each case begins with new workers of the compiler, forked where it can be: nothing that an earlier case
    wrote out of bounds counts. The smallest candidate is confirmed in an interpreter of its own.

    passing  the settings of another toolchain, on which the cases pass and the reduced ones must pass too
    kinds    of the cases' programs, if known, as in `Evaluator`
    forked   the smallest candidate is confirmed in a process that is forked by another interpreter than the
             search's, which ran no case: for many cases, whose results the caller repeats
    """

    def __init__(
        self,
        shard: Shard,
        budget: Budget | None = None,
        passing: Shard | None = None,
        kinds: Collection[str] = (),
        *,
        forked: bool = False,
    ) -> None:
        self._shard = shard
        self._kinds = kinds
        self._budget = budget or Budget()
        self._exit_stack = contextlib.ExitStack()
        self._evaluator = self._exit_stack.enter_context(Evaluator(shard, kinds=kinds))
        self._fresh = self._exit_stack.enter_context(
            Evaluator(replace(shard, fresh=True, forked=forked), share_with=self._evaluator, kinds=kinds)
        )
        self._passing = (
            None if passing is None else self._exit_stack.enter_context(Evaluator(passing, kinds=kinds))
        )
        self._impatient: Evaluator | None = None

    def __enter__(self) -> Reducer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exit_stack.__exit__(kind, error, trace)

    @property
    def configuration(self) -> str:
        """Options and profile of the outcomes that are not the default."""
        return self._evaluator.configuration

    def evaluate(self, cases: Sequence[TestCase]) -> list[Outcome]:
        """The outcomes of cases before their reduction."""
        return self._evaluator.evaluate(cases)

    def reduce(
        self,
        case: TestCase,
        first: Outcome | None = None,
        *,
        budget: Budget | None = None,
        journal: Path | None = None,
        progress: Callable[[Step], None] | None = None,
    ) -> Reduction:
        """Reduces `case`; `first` is its outcome, if known.

        budget  of this case; by default the reducer's

        Raises UsageError if the case does not fail, or not in the same way twice.
        """
        begin, budget = time.monotonic(), budget or self._budget
        for evaluator in (self._evaluator, self._impatient, self._passing):
            if evaluator is not None:
                evaluator.renew()
        found = self._reduce_case(case, first, budget, journal, progress)
        return self._reduce_root_cause(found, budget, journal, begin) if found.confirmed else found

    def _reduce_case(
        self,
        case: TestCase,
        first: Outcome | None,
        budget: Budget,
        journal: Path | None,
        progress: Callable[[Step], None] | None,
    ) -> Reduction:
        """The smallest case found with the bug of `case`."""
        program_format = get_format(case.program.kind)
        if first is None:
            [first] = self._evaluator.evaluate([case])
        [again] = self._evaluator.evaluate([case])
        _require_reproducible(case, first, again)
        wanted = symptom_of(first)
        start = program_format.load(case, self._evaluator, first)
        evaluator = self._search_evaluator(first)
        reduced = self._run_engine(start, program_format, evaluator, wanted, budget, journal, progress)
        others = tuple(_mark_reduced(program_format.case(other), case) for other in reduced.others)
        before = program_format.spec.size(start)
        for candidate in _candidates_to_confirm(reduced):
            small = _mark_reduced(program_format.case(candidate), case)
            [outcome] = self._fresh.evaluate([small])
            if has_symptom(outcome, wanted):
                minimal = reduced.minimal and candidate is reduced.best
                reduced = replace(reduced, best=candidate, minimal=minimal)
                after = program_format.spec.size(candidate)
                return Reduction(small, outcome, first, before, after, reduced, others, confirmed=True)
        return Reduction(case, first, first, before, before, reduced, others, confirmed=False)

    def _search_evaluator(self, failing: Outcome) -> Evaluator:
        """Runs candidates of a failure."""
        if failing.verdict is not Verdict.HANG:
            return self._evaluator
        if self._impatient is None:
            shard = replace(self._shard, limits=self._shard.limits.with_times(HANG_SEARCH))
            self._impatient = self._exit_stack.enter_context(
                Evaluator(shard, share_with=self._evaluator, kinds=self._kinds)
            )
        return self._impatient

    def _run_engine(
        self,
        start: Any,
        program_format: ProgramFormat[Any],
        evaluator: Evaluator,
        wanted: dict[str, Any],
        budget: Budget,
        journal: Path | None,
        progress: Callable[[Step], None] | None,
    ) -> SearchResult[Any]:
        return reduce(
            start,
            program_format.spec,
            SymptomClassifier(
                evaluator,
                wanted,
                program_format.case,
                self._passing,
                program_format.valid,
                program_format.declares,
            ),
            budget=budget,
            width=self._shard.workers,
            journal=Journal(journal),
            progress=progress,
        )

    def _reduce_root_cause(
        self,
        found: Reduction,
        budget: Budget,
        journal: Path | None,
        begin: float,
    ) -> Reduction:
        """The reduction with its root, if it has one, reduced with the rest of the budget.

        At least a quarter of the time remains for it. What is left of a call's parts by a search that did not
        end is no root: which of them have the bug is not known.
        """
        done, tried = found.reduced, 0
        evaluator = self._search_evaluator(found.outcome)

        def run(one: TestCase) -> Outcome:
            nonlocal tried
            tried += 1
            return evaluator.evaluate([one])[0]

        there = self._find_root_cause(found, run)
        if there is None or not self._passes_where_required(there[0].case(there[1])):
            return found
        program_format, start, first = there
        wanted = symptom_of(first)
        seconds = max(budget.seconds - (time.monotonic() - begin), budget.seconds / 4)
        left = Budget(max(budget.runs - done.runs - tried, 0), seconds)
        another = None if journal is None else journal.with_suffix(".upstream.jsonl")
        more = self._run_engine(start, program_format, evaluator, wanted, left, another, None)
        if not more.minimal and program_format.kind != found.case.program.kind:
            return found
        small = _mark_reduced(program_format.case(more.best), found.case)
        [outcome] = self._fresh.evaluate([small])
        if not has_symptom(outcome, wanted):
            return found
        runs_by_pass = Counter(done.runs_by_pass) + Counter(upstream=tried + more.runs)
        runs, replayed = done.runs + tried + more.runs, done.replayed + more.replayed
        others = tuple(one for one in found.others if one.id != small.id)
        counted = replace(done, runs=runs, replayed=replayed, runs_by_pass=runs_by_pass)
        return replace(found, reduced=counted, others=others, root=(small, outcome))

    def _find_root_cause(
        self, found: Reduction, run: Callable[[TestCase], Outcome]
    ) -> tuple[ProgramFormat[Any], Any, Outcome] | None:
        """The root of a reduced case, its format and its outcome: a part of the program, or of what the one
        call in it is made of.
        """
        case, outcome = found.case, found.outcome
        program_format = get_format(case.program.kind)
        if program_format.parts(found.reduced.best) > 1:
            # Loaded again: the library's values have changed with the inputs.
            whole = program_format.load(case, self._evaluator, outcome)
            there = find_root_cause(whole, program_format, run)
            return None if there is None else (program_format, *there)
        wrong, inner = outcome.verdict is Verdict.WRONG_RESULT, None
        if wrong or _dies_without_trace(outcome):
            inner = program_format.decompose(case, self._evaluator)
        if inner is None or not has_symptom(shown := run(inner), symptom_of(outcome)):
            return None
        program_format = get_format(inner.program.kind)
        whole = program_format.load(inner, self._evaluator, shown)
        there = find_root_cause(whole, program_format, run) if wrong else None
        return (program_format, *(there or (whole, shown)))

    def _passes_where_required(self, case: TestCase) -> bool:
        """Whether a case passes on the toolchain where it must."""
        return self._passing is None or self._passing.evaluate([case])[0].verdict is Verdict.PASS


def reduce_case(
    case: TestCase,
    shard: Shard,
    *,
    budget: Budget | None = None,
    journal: Path | None = None,
    progress: Callable[[Step], None] | None = None,
    passing: Shard | None = None,
) -> Reduction:
    """Reduces one case; see `Reducer`."""
    with Reducer(shard, budget, passing) as reducer:
        return reducer.reduce(case, journal=journal, progress=progress)


def _require_reproducible(case: TestCase, first: Outcome, again: Outcome) -> None:
    name = case.id[:16]
    if not first.verdict.is_failure:
        raise UsageError(
            f"case {name} does not fail on {first.backend}: {first.verdict.value} ({first.summary}); "
            "there is nothing to reduce"
        )
    if symptom_of(first) != symptom_of(again):
        raise UsageError(
            f"case {name} fails in one way and then in another ({first.summary}; {again.summary}); "
            "what does not repeat cannot be reduced"
        )


def _dies_without_trace(outcome: Outcome) -> bool:
    """Whether nothing but the case tells where a process died."""
    shown = symptom_of(outcome)
    died = outcome.verdict is Verdict.CRASH and not outcome.evidence.error
    return died and not shown["frames"] and not shown["complaint"]


def _candidates_to_confirm(found: SearchResult[Any]) -> Iterator[Any]:
    """The smallest first: the last one taken, the second last, the fourth last, …, and
    the first.

    The search's processes ran other candidates before, and what a compiler reads out of bounds there may lead
    it to one that fails in no other process.
    """
    yield found.best
    back = 2
    while back < len(found.taken):
        yield found.taken[-back]
        back *= 2
    if len(found.taken) > 1:
        yield found.taken[0]


def _mark_reduced(case: TestCase, origin: TestCase) -> TestCase:
    """The case with a note of its original in the provenance."""
    return replace(case, provenance=origin.provenance.reduced())
