"""What some runs of one revision amount to.

The rule is that of syzkaller (pkg/bisect, `bisectionDecision`): 10 runs of a revision, 20 of the first or
where the bug shows in less than half of them; failing at max(2, a sixth) failures, clean without any failure
and with at least half of the runs clean (three quarters for a flaky bug); trouble with the machine is never
clean.

Ours besides: as long as the runs of every revision agree among themselves, two of them decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class RevisionStatus(Enum):
    """What a revision is."""

    CLEAN = "clean"  #: the bug is not there
    FAILING = "failing"  #: the bug is there
    SKIPPED = "skipped"  #: it cannot be had, or does something third
    TROUBLE = "trouble"  #: the machine failed; nothing is known


@dataclass(frozen=True)
class Counts:
    """What some runs of one revision did.

    bad             showed the bug
    reworded             of those, so many in other words
    good            were as they are without it
    other           something third: another failure, a refusal
    infrastructure  said nothing about the revision: the machine failed
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
        """How many there were."""
        return self.bad + self.good + self.other + self.infrastructure

    @property
    def unanimous(self) -> bool:
        """Whether all did the same."""
        return self.runs in (self.bad, self.good, self.other, self.infrastructure)

    @property
    def mostly_reworded(self) -> bool:
        """Whether most of what showed the bug did so in other words."""
        return 2 * self.reworded > self.bad


@dataclass(frozen=True)
class DecisionRule:
    """How many runs decide.

    full   runs of a revision once any two runs of one revision disagreed, and of the clean revision that the
           answer rests on; at least 2
    quick  runs of a revision until then
    """

    full: int = 10
    quick: int = 2

    @property
    def thorough(self) -> int:
        """Runs of the first revision, and of all once the bug has been seen to be flaky."""
        return 2 * self.full

    def judge(self, counts: Counts, need: int, *, flaky: bool) -> RevisionStatus | None:
        """What `counts` amount to; None if it takes `need` runs to say."""
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
        return RevisionStatus.TROUBLE if counts.infrastructure > counts.other else RevisionStatus.SKIPPED

    @staticmethod
    def rate(failing: Counts) -> float:
        """How often the bug shows in a run, estimated from all runs of failing revisions.

        Laplace's rule of succession, (bad + 1) / (bad + good + 2): two of two are no proof of always.
        """
        return (failing.bad + 1) / (failing.bad + failing.good + 2)

    @staticmethod
    def confidence(rate: float, clean: Counts) -> float:
        """The chance that a bug of this rate would have shown in these runs: 1 - (1 - rate)^n."""
        return 1 - (1 - rate) ** clean.good
