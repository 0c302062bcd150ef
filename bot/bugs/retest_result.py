"""What a retest means for its bug: pure, but for the rows it is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.reports.templates import pluralize
from fuzzing.outcomes import Outcome, Verdict

#: Fresh runs of a retest. syzbot asks for three that reproduce; as many must not.
RUNS = 3


@dataclass(frozen=True)
class RetestResult:
    """The runs of a bug's case on one build.

    failed   runs that showed the bug
    other    runs that ended badly in another way: no fix, and another bug
    healthy  whether the build did with a case it must pass what it has to
    reworded   of `failed`, runs that showed it in other words than are known of it
    """

    runs: int
    failed: int
    other: int
    control_passed: bool
    reworded: int = 0

    @property
    def passed(self) -> bool:
        """Whether the bug is not on this build."""
        return self.control_passed and self.runs >= RUNS and not self.failed and not self.other

    def describe(self, label: str) -> str:
        """One sentence."""
        if not self.control_passed:
            return f"{label} cannot be trusted: a case that it passed before fails on it now"
        if self.failed:
            doubt = (
                ", in other words than before: perhaps the same bug" if self.reworded == self.failed else ""
            )
            return f"fails in {self.failed} of {pluralize(self.runs, 'fresh run')} on {label}{doubt}"
        if self.other:
            return f"fails in another way in {self.other} of {pluralize(self.runs, 'fresh run')} on {label}"
        return f"passes in all of {pluralize(self.runs, 'fresh run')} on {label}"


def count_runs(
    outcomes: Sequence[Outcome],
    same: Sequence[bool],
    control: Sequence[Outcome],
    reworded: Sequence[bool] = (),
) -> RetestResult:
    """Counts a retest.

    same     whether each outcome shows the bug, as its signature tells
    reworded   whether each may show it in other words (`fuzzing.triage.similar_failures`)
    control  the outcomes of a case that must pass; none where there is no such case, and then the runs of
             the bug's own must have reached a verdict for the build to count as healthy
    """
    reworded_failures = sum(reworded)
    failed = reworded_failures + sum(
        one.verdict.is_failure and alike for one, alike in zip(outcomes, same, strict=True)
    )
    passed = sum(one.verdict is Verdict.PASS for one in outcomes)
    if control:
        control_passed = all(one.verdict is Verdict.PASS for one in control)
    else:
        control_passed = failed + passed > 0
    return RetestResult(
        len(outcomes), failed, len(outcomes) - failed - passed, control_passed, reworded_failures
    )
