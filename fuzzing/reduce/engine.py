"""The reduction engine: tries smaller candidates until none has the same bug.

It is independent of what it reduces. A spec defines a size, a key and passes; a pass proposes candidates in a
fixed order; a classifier runs several at once, and the first in order with the bug is taken. So the result
does not depend on timing, and an interrupted reduction resumes from its journal without repeating runs.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Generic, Protocol, TypeVar

from fuzzing.reduce.journal import Journal

T = TypeVar("T")
Candidate = TypeVar("Candidate", contravariant=True)

#: Classification of a candidate: the same bug, another bug, or none.
SAME, OTHER, CLEAN = "same", "other", "clean"


class Classifier(Protocol[Candidate]):
    """Runs candidates."""

    def __call__(self, candidates: Sequence[Candidate]) -> Sequence[str]:
        """SAME, OTHER or CLEAN for each candidate, in order."""
        ...


@dataclass(frozen=True)
class ReductionSpec(Generic[T]):
    """How a kind of object is reduced.

    size    to be minimized: tuples are compared in order, so the first number counts most
    key     names a candidate by its content
    passes  in order, the most effective first
    """

    size: Callable[[T], tuple[float, ...]]
    key: Callable[[T], str]
    passes: tuple[Pass[T], ...]


@dataclass(frozen=True)
class Pass(Generic[T]):
    """One way to make candidates smaller: `apply` tries candidates until it has none left."""

    name: str
    apply: Callable[[Attempt[T]], None]


@dataclass(frozen=True)
class Budget:
    """Limits of a reduction: candidates classified, and seconds."""

    runs: int = 2000
    seconds: float = 600.0


@dataclass(frozen=True)
class Step:
    """A candidate taken: after how many runs, by which pass, and its size."""

    run: int
    by: str
    size: tuple[float, ...]


@dataclass(frozen=True)
class SearchResult(Generic[T]):
    """Result of a reduction.

    best          the smallest candidate with the bug
    minimal       whether no pass can make it smaller
    runs          candidates classified now; `replayed` were known from an earlier reduction
    runs_by_pass  number of runs by pass
    steps         what is known of the candidates taken, and
    taken         the candidates; `best` is the last one, where any was taken
    others        candidates with another bug, smallest first
    """

    best: T
    minimal: bool
    runs: int
    replayed: int
    runs_by_pass: Mapping[str, int]
    steps: tuple[Step, ...]
    taken: tuple[T, ...]
    others: tuple[T, ...]


class _BudgetExhaustedError(Exception):
    """The budget is spent. Raised and caught here, to unwind passes."""


@dataclass
class Attempt(Generic[T]):
    """The best candidate so far, and a method that tries smaller ones; passed to passes."""

    _reduction: _Reduction[T]
    by: str

    @property
    def best(self) -> T:
        """The smallest candidate taken so far."""
        return self._reduction.best

    def any(self, candidates: Iterable[T]) -> bool:
        """Tries candidates in order until one is taken. False if none was.

        Candidates that are not smaller than the best, and those classified before, cost nothing.
        """
        return self._reduction.any(candidates, self.by)


def reduce(
    start: T,
    spec: ReductionSpec[T],
    classify: Classifier[T],
    *,
    budget: Budget | None = None,
    width: int = 1,
    journal: Journal | None = None,
    progress: Callable[[Step], None] | None = None,
) -> SearchResult[T]:
    """The smallest object found with the bug of `start`.

    width    candidates classified at once
    journal  stores classifications across reductions
    """
    return _Reduction(start, spec, classify, budget or Budget(), width, journal or Journal(), progress).run()


@dataclass
class _Reduction(Generic[T]):
    best: T
    spec: ReductionSpec[T]
    classify: Classifier[T]
    budget: Budget
    width: int
    journal: Journal
    progress: Callable[[Step], None] | None
    steps: list[Step] = field(default_factory=list)
    taken: list[T] = field(default_factory=list)
    others: dict[str, T] = field(default_factory=dict)
    runs_by_pass: Counter[str] = field(default_factory=Counter)
    replayed: int = 0
    answers: dict[str, str] = field(default_factory=dict)

    @property
    def runs(self) -> int:
        return self.runs_by_pass.total()

    def run(self) -> SearchResult[T]:
        self.begin = time.monotonic()
        self.size = self.spec.size(self.best)
        minimal = True
        try:
            while self._run_passes():
                pass
        except _BudgetExhaustedError:
            minimal = False
        others = sorted(self.others.values(), key=self.spec.size)
        return SearchResult(
            self.best,
            minimal,
            self.runs,
            self.replayed,
            self.runs_by_pass,
            tuple(self.steps),
            tuple(self.taken),
            tuple(others),
        )

    def _run_passes(self) -> bool:
        """Runs every pass once; returns whether any made progress. Sizes fall each time, so this ends."""
        before = len(self.steps)
        for item in self.spec.passes:
            item.apply(Attempt(self, item.name))
        return len(self.steps) > before

    def any(self, candidates: Iterable[T], by: str) -> bool:
        fresh = self._untried(candidates)
        while batch := list(islice(fresh, self.width)):
            answers = self._classify_batch(batch, by)
            for (_, candidate), answer in zip(batch, answers, strict=True):
                if answer == SAME:
                    self._accept(candidate, by)
                    return True
        return False

    def _untried(self, candidates: Iterable[T]) -> Iterable[tuple[str, T]]:
        """Candidates that are smaller than the best and not known to lack the bug."""
        proposed: set[str] = set()
        for candidate in candidates:
            if self.spec.size(candidate) >= self.size:
                continue
            key = self.spec.key(candidate)
            if key not in proposed and self.answers.get(key, SAME) == SAME:
                proposed.add(key)
                yield key, candidate

    def _classify_batch(self, batch: list[tuple[str, T]], by: str) -> list[str]:
        unknown = [(key, candidate) for key, candidate in batch if not self._is_known(key)]
        if unknown:
            self._charge(len(unknown), by)
            answers = self.classify([candidate for _, candidate in unknown])
            for (key, _), answer in zip(unknown, answers, strict=True):
                self.journal.put(key, answer)
                self.answers[key] = answer
        for key, candidate in batch:
            if self.answers[key] == OTHER:
                self.others[key] = candidate
        return [self.answers[key] for key, _ in batch]

    def _is_known(self, key: str) -> bool:
        """Whether the classification is known: from this reduction or an earlier one."""
        if key not in self.answers and (answer := self.journal.get(key)) is not None:
            self.answers[key] = answer
            self.replayed += 1
        return key in self.answers

    def _charge(self, count: int, by: str) -> None:
        over_time = time.monotonic() - self.begin > self.budget.seconds
        if self.runs + count > self.budget.runs or over_time:
            raise _BudgetExhaustedError
        self.runs_by_pass[by] += count

    def _accept(self, candidate: T, by: str) -> None:
        self.best, self.size = candidate, self.spec.size(candidate)
        step = Step(self.runs, by, self.size)
        self.steps.append(step)
        self.taken.append(candidate)
        if self.progress is not None:
            self.progress(step)


def find_single(
    attempt: Attempt[T], units: Callable[[T], Sequence[Any]], only: Callable[[T, Sequence[Any]], T | None]
) -> None:
    """Bisects for one unit that has the bug without the rest.

    The second half is not run but assumed to have the bug, and the last unit is confirmed alone. A single
    cause so costs one run per bit. Causes that need several units are left to `ddmin`.

    only  an object of these units alone; None if there is no such object
    """
    whole = attempt.best
    block = units(whole)
    proved = True
    while len(block) > 1:
        half = len(block) // 2
        candidate = only(whole, block[:half])
        proved = candidate is not None and attempt.any([candidate])
        block = block[:half] if proved else block[half:]
    if not proved and (candidate := only(whole, block)) is not None:
        attempt.any([candidate])


def ddmin(
    attempt: Attempt[T],
    units: Callable[[T], Sequence[Any]],
    without: Callable[[T, Sequence[Any]], T | None],
) -> None:
    """Removes units: first half of them at once, then ever fewer, down to single ones.

    Zeller and Hildebrandt's ddmin (TSE 2002) by complements; after a removal it continues at the same place.

    units    the parts of a candidate
    without  an object without some of its units; None if there is no such object
    """
    length = max(1, len(units(attempt.best)) // 2)
    while True:
        place = 0
        while place < len(current := units(attempt.best)):
            starts = range(place, len(current), length)
            taken = _remove_first_block(attempt, current, without, starts, length)
            if taken is None:
                break
            place = taken
        if length == 1:
            return
        length = max(1, length // 2)


def _remove_first_block(
    attempt: Attempt[T],
    current: Sequence[Any],
    without: Callable[[T, Sequence[Any]], T | None],
    starts: range,
    length: int,
) -> int | None:
    """Removes the first removable block; returns its index, or None."""
    best = attempt.best
    proposed: dict[int, int] = {}  # by identity of the candidate: index of its block

    def candidates() -> Iterable[T]:
        for start in starts:
            candidate = without(best, current[start : start + length])
            if candidate is not None:
                proposed[id(candidate)] = start
                yield candidate

    return proposed[id(attempt.best)] if attempt.any(candidates()) else None
