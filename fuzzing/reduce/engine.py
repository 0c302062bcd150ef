"""The reduction engine: tries smaller candidates until none shows the same bug.

It is independent of what it reduces. A spec gives a size, a key and passes; a pass proposes candidates in a
fixed order; a classifier runs several at once, and the first in order that shows the bug is taken. So the result
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

#: What a candidate shows: the same bug, another bug, or none.
SAME, OTHER, CLEAN = "same", "other", "clean"


class Classifier(Protocol[Candidate]):
    """Runs candidates."""

    def __call__(self, candidates: Sequence[Candidate]) -> Sequence[str]:
        """SAME, OTHER or CLEAN for each candidate, in their order."""
        ...


@dataclass(frozen=True)
class ReductionSpec(Generic[T]):
    """How a kind of thing is reduced.

    size    what is to become small: tuples are compared in order, so the first number counts most
    key     names a candidate by its content
    passes  in the order in which they are worth trying: what cuts most comes first
    """

    size: Callable[[T], tuple[float, ...]]
    key: Callable[[T], str]
    passes: tuple[Pass[T], ...]


@dataclass(frozen=True)
class Pass(Generic[T]):
    """One way to make things smaller: `apply` tries candidates for as long as it has any."""

    name: str
    apply: Callable[[Attempt[T]], None]


@dataclass(frozen=True)
class Budget:
    """What a reduction may cost: candidates judged, and seconds."""

    runs: int = 2000
    seconds: float = 600.0


@dataclass(frozen=True)
class Step:
    """A candidate that was taken: after how many runs, by which pass, and its size."""

    run: int
    by: str
    size: tuple[float, ...]


@dataclass(frozen=True)
class SearchResult(Generic[T]):
    """What came of it.

    best     the smallest that shows the bug
    minimal  whether every pass was tried on it and none made it smaller
    runs     candidates judged now; `replayed` were known from an earlier try
    runs_by_pass    by pass, the runs that it took
    steps    the candidates taken
    others   candidates that show another bug, smallest first
    """

    best: T
    minimal: bool
    runs: int
    replayed: int
    runs_by_pass: Mapping[str, int]
    steps: tuple[Step, ...]
    others: tuple[T, ...]


class _BudgetExhaustedError(Exception):
    """The budget is spent. Raised and caught here: passes are unwound by it."""


@dataclass
class Attempt(Generic[T]):
    """The best candidate so far, and a method that tries smaller ones; passes get it."""

    _reduction: _Reduction[T]
    by: str

    @property
    def best(self) -> T:
        """The smallest so far."""
        return self._reduction.best

    def any(self, candidates: Iterable[T]) -> bool:
        """Tries candidates in order until one is taken. False if none was.

        Those that are not smaller than the best, and those judged before, cost nothing.
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
    """The smallest thing found that shows what `start` shows.

    width    candidates judged at once
    journal  remembers answers from one try to the next
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
            self.best, minimal, self.runs, self.replayed, self.runs_by_pass, tuple(self.steps), tuple(others)
        )

    def _run_passes(self) -> bool:
        """Every pass once; whether any of them got anywhere. Sizes fall each time, so this ends."""
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
        """Those that are smaller than the best and not known to be of no use."""
        proposed: set[str] = set()
        for candidate in candidates:
            if self.spec.size(candidate) >= self.size:
                continue
            key = self.spec.key(candidate)
            if key not in proposed and self.answers.get(key, SAME) == SAME:
                proposed.add(key)
                yield key, candidate

    def _classify_batch(self, batch: list[tuple[str, T]], by: str) -> list[str]:
        asked = [(key, candidate) for key, candidate in batch if not self._is_known(key)]
        if asked:
            self._charge(len(asked), by)
            answers = self.classify([candidate for _, candidate in asked])
            for (key, _), answer in zip(asked, answers, strict=True):
                self.journal.put(key, answer)
                self.answers[key] = answer
        for key, candidate in batch:
            if self.answers[key] == OTHER:
                self.others[key] = candidate
        return [self.answers[key] for key, _ in batch]

    def _is_known(self, key: str) -> bool:
        """Whether the answer is known: from this try, where it was one too many, or from an earlier one."""
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
        if self.progress is not None:
            self.progress(step)


def find_single(
    attempt: Attempt[T], units: Callable[[T], Sequence[Any]], only: Callable[[T, Sequence[Any]], T | None]
) -> None:
    """Looks for the one unit that shows the bug without the rest: in their first half, or else in the second.

    The second half is not run but assumed to show it, and the last unit is confirmed alone. A single cause so
    costs one run per bit. Causes that lie apart are left to `ddmin`.

    only  a thing of these units alone; None if there is no such thing
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
    """Leaves out units: first half of them at once, then ever fewer, down to each by itself.

    Zeller and Hildebrandt's ddmin (TSE 2002) by complements; after a removal it continues at the same place.

    units    the parts of a candidate
    without  a thing without some of its units; None if there is no such thing
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
    """Cuts the first block that can go; where it stood, or None if none can."""
    best = attempt.best
    proposed: dict[int, int] = {}  # by identity of the candidate: where its block stands

    def candidates() -> Iterable[T]:
        for start in starts:
            candidate = without(best, current[start : start + length])
            if candidate is not None:
                proposed[id(candidate)] = start
                yield candidate

    return proposed[id(attempt.best)] if attempt.any(candidates()) else None
