"""Classifies a case from its outcomes and repeats at head and base. Pure functions.

A failure at both is already broken, or changed if it fails in another way. A failure at head that passes at
base is a regression if every fresh run agrees on both sides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from bot.campaigns.classify.resource_failures import exceeded_limit, exhausted_resource_of, recovered_alone
from bot.store.models import Classification, Finding
from fuzzing.outcomes import Outcome, Verdict

NO_BASE = "there is no base to compare with"
BASE_NOT_RUN = "base was not run within `budget`; another campaign continues"
NOT_REPEATED = "not repeated in fresh processes within `budget`; another campaign continues"
NEW_HERE = "new here, and fails: base does not support it"
RETRIED_NEXT_CAMPAIGN = "an infrastructure failure; the next campaign runs it again"
SUPPORT_LOST = "unsupported at head, passes at base; unsupported cases are never filed as bugs"


class RerunCounts(NamedTuple):
    """Fresh runs of a case on one side: `agreed` of `total` gave the first run's verdict and phase."""

    agreed: int = 0
    total: int = 0


@dataclass(frozen=True)
class ClassifiedCase:
    """The classification of one case; the fields are those of `Finding`."""

    classification: Classification
    verdict: Verdict
    reason: str
    head: tuple[int, int]  # failed k of n runs
    base: tuple[int, int]


@dataclass(frozen=True)
class CaseResults:
    """Everything known of one case.

    compared  whether the campaign has a base
    reruns    fresh runs at head
    out_of_reach  why head may fail although the commit is right (`classify.out_of_reach`), "" if nothing does
    change    how head differs from base beside the verdict, if it repeats (`classify.changes`)
    """

    head: Outcome
    base: Outcome | None
    head_runs: RerunCounts
    base_runs: RerunCounts
    repeats: int
    compared: bool
    reruns: tuple[Outcome, ...] = ()
    change: str = ""
    out_of_reach: str = ""


def make_finding(classified: ClassifiedCase, campaign_id: int, case_id: str, signature: str) -> Finding:
    """The row of a classified case."""
    return Finding(
        campaign_id=campaign_id,
        case_id=case_id,
        classification=classified.classification.value,
        verdict=classified.verdict.value,
        signature=signature,
        reduced="",
        head_failed=classified.head[0],
        head_runs=classified.head[1],
        base_failed=classified.base[0],
        base_runs=classified.base[1],
        reason=classified.reason,
    )


def classify(seen: CaseResults) -> ClassifiedCase | None:
    """The classification of a case; None if it is no finding."""
    if seen.head.verdict.is_failure:
        return _classify_failure(seen)
    if seen.base is None:
        return None
    if seen.change:
        return _finding(seen, Classification.CHANGED, seen.change)
    if seen.head.verdict is Verdict.UNSUPPORTED and seen.base.verdict is Verdict.PASS:
        if seen.out_of_reach:
            return _finding(seen, Classification.INCONCLUSIVE, f"{_describe(seen.head)}: {seen.out_of_reach}")
        return _finding(seen, Classification.SUPPORT_LOST, SUPPORT_LOST)
    if seen.head.verdict is Verdict.PASS and seen.base.verdict.is_failure:
        reason = f"{_describe(seen.base)} at base, passes at head"
        return ClassifiedCase(Classification.FIXED, seen.base.verdict, reason, (0, 1), (1, 1))
    return None


def _classify_failure(seen: CaseResults) -> ClassifiedCase:
    if what := exhausted_resource_of(seen.head):
        return _finding(seen, Classification.INFRASTRUCTURE, f"{what}: {RETRIED_NEXT_CAMPAIGN}")
    if seen.compared and seen.base is None:
        return _finding(seen, Classification.INCONCLUSIVE, BASE_NOT_RUN)
    if seen.change:
        return _finding(seen, Classification.CHANGED, seen.change)
    if seen.base is not None and seen.base.verdict.is_failure:
        return _finding(seen, Classification.ALREADY_BROKEN, f"{_describe(seen.base)} at base too")
    supported = seen.base is None or seen.base.verdict is not Verdict.UNSUPPORTED
    if seen.base is not None and supported and seen.base.verdict is not Verdict.PASS:
        return _finding(
            seen, Classification.INCONCLUSIVE, f"cannot be compared: {_describe(seen.base)} at base"
        )
    agreed, total = seen.head_runs
    if agreed < total:
        return _classify_unstable(seen)
    if not supported:
        return _finding(seen, Classification.INCONCLUSIVE, NEW_HERE)
    if seen.out_of_reach:
        return _finding(seen, Classification.INCONCLUSIVE, f"{_describe(seen.head)}: {seen.out_of_reach}")
    if total < seen.repeats:
        return _finding(seen, Classification.INCONCLUSIVE, NOT_REPEATED)
    if seen.base is None:
        return _finding(seen, Classification.INCONCLUSIVE, NO_BASE)
    return _classify_against_passing_base(seen, f"{_describe(seen.head)} at head, passes at base")


def _classify_unstable(seen: CaseResults) -> ClassifiedCase:
    """A failure that did not repeat: infrastructure, a slow case, a flaky program, or a flaky compiler."""
    if why := recovered_alone(seen.head, seen.reruns):
        return _finding(seen, Classification.INFRASTRUCTURE, f"{why}: {RETRIED_NEXT_CAMPAIGN}")
    if why := exceeded_limit(seen.head, seen.reruns):
        return _finding(seen, Classification.INCONCLUSIVE, why)
    agreed, total = seen.head_runs
    reason = f"{_describe(seen.head)} in {agreed} of {total} fresh runs at head"
    if any(one.verdict is Verdict.NONDETERMINISTIC for one in seen.reruns):
        return _finding(
            seen,
            Classification.FLAKY_PROGRAM,
            f"{reason}; the library's own result is nondeterministic, so the compiler is not judged",
        )
    return _finding(seen, Classification.FLAKY, f"{reason}: flaky, so not attributed to a change")


def _classify_against_passing_base(seen: CaseResults, reason: str) -> ClassifiedCase:
    passed, total = seen.base_runs
    # It passed beside other cases, such as one whose numbers it found in memory. One run alone may be chance.
    if not passed and total > 1:
        return _finding(
            seen, Classification.ALREADY_BROKEN, f"passes in none of {total} fresh runs at base either"
        )
    if passed < total:
        return _finding(
            seen, Classification.FLAKY, f"passes in only {passed} of {total} fresh runs at base: not new here"
        )
    if total < seen.repeats:
        return _finding(seen, Classification.INCONCLUSIVE, f"base: {NOT_REPEATED}")
    return _finding(seen, Classification.REGRESSION, reason)


def _finding(seen: CaseResults, classification: Classification, reason: str) -> ClassifiedCase:
    head = _failed_runs(seen.head, seen.head_runs)
    base = (0, 0) if seen.base is None else _failed_runs(seen.base, seen.base_runs)
    return ClassifiedCase(classification, seen.head.verdict, reason, head, base)


def _failed_runs(outcome: Outcome, runs: RerunCounts) -> tuple[int, int]:
    """(failed, runs) on one side: of the fresh runs, or of the one ordinary run if there are none."""
    agreed, total = runs
    if total == 0:
        return int(outcome.verdict is not Verdict.PASS), 1
    return (total - agreed if outcome.verdict is Verdict.PASS else agreed), total


def _describe(outcome: Outcome) -> str:
    return f"{outcome.verdict.value.replace('_', ' ')} in {outcome.phase.value}"
