"""The status of a revision from its runs.

The rule of syzkaller (pkg/bisect, `bisectionDecision`): 10 runs of a revision, 20 of the first one or where
less than half fail; failing at max(2, a sixth) failures; clean without failures and with half of the runs
good (three quarters for a flaky bug); infrastructure failures never count as clean.

Our addition: two runs decide while the runs of every revision agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class RevisionStatus(Enum):
    """Status of a revision."""

    CLEAN = "clean"  #: the bug is not there
    FAILING = "failing"  #: the bug is there
    SKIPPED = "skipped"  #: it cannot be made, or does something else
    INFRASTRUCTURE = "trouble"  #: infrastructure failed; status unknown


@dataclass(frozen=True)
class Counts:
    """Results of the runs of one revision.

    bad             showed the bug
    reworded        of those, with another message
    good            passed
    other           another failure, or a refusal
    infrastructure  failed for reasons of the machine
    """

    bad: int = 0
    good: int = 0
    other: int = 0
    infrastructure: int = 0
    reworded: int = 0

    def __add__(self, more: Counts) -> Counts:
        return Counts(
            self.bad + more.bad,
            self.good + more.good,
            self.other + more.other,
            self.infrastructure + more.infrastructure,
            self.reworded + more.reworded,
        )

    @property
    def runs(self) -> int:
        """Number of runs."""
        return self.bad + self.good + self.other + self.infrastructure

    @property
    def unanimous(self) -> bool:
        """Whether all runs agree."""
        return self.runs in (self.bad, self.good, self.other, self.infrastructure)

    @property
    def mostly_reworded(self) -> bool:
        """Whether most bad runs are reworded."""
        return 2 * self.reworded > self.bad


@dataclass(frozen=True)
class DecisionRule:
    """How many runs decide.

    full   runs of a revision once runs of one revision disagreed, and of the clean revision that is named; at
           least 2
    quick  runs of a revision until then
    """

    full: int = 10
    quick: int = 2

    @property
    def thorough(self) -> int:
        """Runs of the first revision, and of all for a flaky bug."""
        return 2 * self.full

    def classify(self, counts: Counts, need: int, *, flaky: bool) -> RevisionStatus | None:
        """The status for `counts`; None if `need` runs are required first."""
        if counts.bad == counts.runs >= self.quick:
            return RevisionStatus.FAILING
        if counts.runs < need:
            return None
        enough_clean = counts.runs * 3 / 4 if flaky else counts.runs / 2
        if not counts.bad and counts.good >= enough_clean:
            return RevisionStatus.CLEAN
        decided = counts.bad + counts.good
        if counts.bad >= max(2, (counts.runs - counts.infrastructure) // 6) and decided >= counts.runs / 2:
            return RevisionStatus.FAILING
        return (
            RevisionStatus.INFRASTRUCTURE if counts.infrastructure > counts.other else RevisionStatus.SKIPPED
        )

    @staticmethod
    def rate(failing: Counts) -> float:
        """The share of runs that fail, from all runs of failing revisions.

        Laplace's rule of succession, (bad + 1) / (bad + good + 2): two of two do not prove "always".
        """
        return (failing.bad + 1) / (failing.bad + failing.good + 2)

    @staticmethod
    def confidence(rate: float, clean: Counts) -> float:
        """The chance that a bug of this rate shows in these runs: 1 - (1 - rate)^n."""
        return 1 - (1 - rate) ** clean.good
