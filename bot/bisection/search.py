"""Bisection over revisions that does not trust single runs. Pure.

Revisions are numbered from the clean to the failing side: oldest to newest for the first bad release, newest
to oldest for the first fixed one.

After syzkaller (pkg/bisect; `bot.bisection.decision_rule` has the rule for one revision), with two
differences. Few runs while all agree: a bug that always shows costs two runs a revision. And the clean
revision next to the first failing one is run in full before it is named, since the answer rests on it.

Error bound: a release with the bug at rate p passes for the clean one only if two runs of the first revision
showed it and ten of this one did not, p²(1-p)^10 ≤ 0.5 % (at p = 1/6); or, where runs disagreed, at least
three of twenty in the first and none of twenty here, ≤ 4.1 % (at p = 0.087).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import reduce
from itertools import pairwise
from operator import add

from bot.bisection.decision_rule import Counts, DecisionRule, RevisionStatus

#: Runs a revision n times, each in a fresh process. No runs: the revision cannot be made.
Probe = Callable[[int, int], Counts]

#: Results below it are unreliable; ours (syzkaller mails none of low confidence).
MIN_CONFIDENCE = 0.9
#: Chance that a reworded failure is the same bug (docs/bisection.md).
REWORDED_CONFIDENCE = 0.8
_MAX_TRIES = 3  # of a revision whose runs mostly end in infrastructure failures


class ResultKind(Enum):
    """Kinds of results."""

    FOUND = "found"  #: a clean revision and, next to it, a failing one
    RANGE = "range"  #: the same, with revisions between them that could not be judged
    HORIZON = "horizon"  #: it fails in every revision that could be judged, to the clean end
    NEVER = "never"  #: it does not fail at the failing end
    UNRELIABLE = "unreliable"  #: it fails too rarely
    ERROR = "error"  #: infrastructure failed, or no revision could be judged


@dataclass(frozen=True)
class ClassifiedRevision:
    """Status and runs of one revision."""

    status: RevisionStatus
    counts: Counts


@dataclass(frozen=True)
class BisectionResult:
    """The result of a bisection.

    clean       last revision before the change; None if none was seen
    failing     first revision after it; None if none was seen
    between     revisions between the two that could not be judged
    confidence  chance that a bug of this rate shows in the runs of `clean`; 0 without one; times
                REWORDED_CONFIDENCE if `failing` shows it reworded
    rate        share of runs that fail, by `DecisionRule.rate`; 0 if none did
    classified  every revision that was probed
    """

    kind: ResultKind
    clean: int | None
    failing: int | None
    between: tuple[int, ...]
    confidence: float
    rate: float
    classified: dict[int, ClassifiedRevision]


def max_probed(revisions: int) -> int:
    """Most revisions probed if none is skipped: ceil(log2 n) + 2."""
    return min(revisions, (revisions - 1).bit_length() + 2)


def bisect(revisions: int, probe: Probe, rule: DecisionRule | None = None) -> BisectionResult:
    """Finds the change among `revisions` ≥ 1 revisions with few probes.

    At most `max_probed(revisions)` are probed if none is skipped. Raises ValueError for 0.
    """
    if revisions < 1:
        raise ValueError("no revisions to bisect")
    search = _Search(revisions, rule or DecisionRule())
    while True:
        step = search.next()
        if isinstance(step, BisectionResult):
            return step
        revision, runs = step
        search.take(revision, probe(revision, runs))


_Step = tuple[int, int]


class _Search:
    """The runs so far. Statuses are computed anew at each step: later runs of one revision may change the
    status of others.
    """

    def __init__(self, revisions: int, rule: DecisionRule) -> None:
        self._size, self._rule = revisions, rule
        self._counts: dict[int, Counts] = {}
        self._unavailable: set[int] = set()
        self._to_confirm: set[int] = set()  # clean, and perhaps to be named: run in full
        self._retries: dict[int, int] = {}

    def take(self, revision: int, counts: Counts) -> None:
        if not counts.runs:
            self._unavailable.add(revision)
        self._counts[revision] = self._counts.get(revision, Counts()) + counts

    def next(self) -> BisectionResult | _Step:
        """The next revision and number of runs; or the result."""
        classified: dict[int, ClassifiedRevision] = {}
        for revision, counts in self._counts.items():
            need = self._need(revision)
            status = self._classify(revision, need)
            if status is None:
                return revision, need - counts.runs
            classified[revision] = ClassifiedRevision(status, counts)
            if status is RevisionStatus.INFRASTRUCTURE:
                return self._retry(revision, need) or self._answer(ResultKind.ERROR, None, None, classified)
        return self._find_failing_end(classified) or self._narrow(classified)

    def _classify(self, revision: int, need: int) -> RevisionStatus | None:
        if revision in self._unavailable:
            return RevisionStatus.SKIPPED
        return self._rule.classify(self._counts[revision], need, flaky=self._flaky)

    def _need(self, revision: int) -> int:
        """Runs that decide the status of a revision."""
        mixed = any(not counts.unanimous for counts in self._counts.values())
        if not mixed and revision not in self._to_confirm:
            return self._rule.quick
        thorough = revision == self._size - 1 or self._flaky
        return self._rule.thorough if thorough else self._rule.full

    @property
    def _flaky(self) -> bool:
        """Whether less than half of the runs of the first revision show the bug."""
        first = self._counts.get(self._size - 1, Counts())
        return 0 < first.bad < first.good

    def _retry(self, revision: int, need: int) -> _Step | None:
        """Discards infrastructure failures and retries, at most _MAX_TRIES times."""
        self._retries[revision] = self._retries.get(revision, 0) + 1
        if self._retries[revision] >= _MAX_TRIES:
            return None
        self._counts[revision] = Counts()
        return revision, need

    def _confirm(self, revision: int) -> _Step | None:
        """The runs still missing for a clean revision that is to be named."""
        self._to_confirm.add(revision)
        missing = self._need(revision) - self._counts[revision].runs
        return (revision, missing) if missing > 0 else None

    def _find_failing_end(self, classified: dict[int, ClassifiedRevision]) -> BisectionResult | _Step | None:
        """Probes the failing end, or its nearest usable neighbor; None once it is known to fail."""
        for revision in reversed(range(self._size)):
            if revision not in classified:
                return revision, self._need(revision)
            found = classified[revision]
            if found.status is RevisionStatus.FAILING:
                return None
            if found.status is RevisionStatus.CLEAN:
                confirm = self._confirm(revision)
                return confirm or self._answer(ResultKind.NEVER, revision, None, classified)
            if found.counts.bad:
                return self._answer(ResultKind.UNRELIABLE, None, None, classified)
        return self._answer(ResultKind.ERROR, None, None, classified)

    def _narrow(self, classified: dict[int, ClassifiedRevision]) -> BisectionResult | _Step:
        failing = min(_with_status(RevisionStatus.FAILING, classified))
        clean = max(
            (one for one in _with_status(RevisionStatus.CLEAN, classified) if one < failing), default=None
        )
        if clean is None and failing and 0 not in classified:
            return 0, self._need(0)
        unknown = _widest_middle(-1 if clean is None else clean, failing, classified)
        if unknown is not None:
            return unknown, self._need(unknown)
        if clean is None:
            return self._answer(ResultKind.HORIZON, None, failing, classified)
        confirm = self._confirm(clean)
        kind = ResultKind.FOUND if failing - clean == 1 else ResultKind.RANGE
        return confirm or self._answer(kind, clean, failing, classified)

    def _answer(
        self,
        kind: ResultKind,
        clean: int | None,
        failing: int | None,
        classified: dict[int, ClassifiedRevision],
    ) -> BisectionResult:
        shown = [classified[one].counts for one in _with_status(RevisionStatus.FAILING, classified)]
        rate = self._rule.rate(reduce(add, shown)) if shown else 0.0
        confidence = 0.0 if clean is None else self._rule.confidence(rate, classified[clean].counts)
        if failing is not None and classified[failing].counts.mostly_reworded:
            confidence *= REWORDED_CONFIDENCE
        if kind in (ResultKind.FOUND, ResultKind.RANGE) and confidence < MIN_CONFIDENCE:
            kind = ResultKind.UNRELIABLE
        between = () if clean is None or failing is None else tuple(range(clean + 1, failing))
        return BisectionResult(
            kind, clean, failing, between, confidence, rate, dict(sorted(classified.items()))
        )


def _with_status(status: RevisionStatus, classified: dict[int, ClassifiedRevision]) -> list[int]:
    return [revision for revision, found in classified.items() if found.status is status]


def _widest_middle(clean: int, failing: int, classified: dict[int, ClassifiedRevision]) -> int | None:
    """The middle of the widest gap between known revisions.

    Without skipped revisions this is bisection; skipped ones usually lie together, and it moves away from
    them.
    """
    known = [clean, *(one for one in sorted(classified) if clean < one < failing), failing]
    width, begin = max((after - before, before) for before, after in pairwise(known))
    return begin + width // 2 if width > 1 else None
