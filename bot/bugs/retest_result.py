"""The result of a retest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.reports.templates import pluralize
from fuzzing.outcomes import Outcome, Verdict

#: Fresh runs of a retest; syzbot requires three that reproduce.
RUNS = 3


@dataclass(frozen=True)
class RetestResult:
    """The runs of a bug's case on one build.

    failed          runs that showed the bug
    other           runs that failed differently: neither a fix nor this bug
    control_passed  whether the control case passed, so the build counts as healthy
    reworded        of `failed`, runs with a reworded error
    """

    runs: int
    failed: int
    other: int
    control_passed: bool
    reworded: int = 0

    @property
    def passed(self) -> bool:
        """Whether this build does not show the bug."""
        return self.control_passed and self.runs >= RUNS and not self.failed and not self.other

    def describe(self, label: str) -> str:
        """One sentence."""
        if not self.control_passed:
            return f"{label} is not healthy: the control case fails on it"
        if self.failed:
            caveat = ", with a reworded error: possibly the same bug" if self.reworded == self.failed else ""
            return f"fails in {self.failed} of {pluralize(self.runs, 'fresh run')} on {label}{caveat}"
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

    same      whether each outcome shows the bug by its signature
    reworded  whether each may show it with a reworded error (`fuzzing.triage.similar_failures`)
    control   the outcomes of the control case; without one, the build counts as healthy if a run of the
              bug's case passed or showed the bug
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
