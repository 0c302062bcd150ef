"""Judging: what the outcomes at head and base, and their repeats, amount to. Pure functions.

What fails at head and at base was broken already. What base passes is a regression when every fresh run at
head agreed with the first one and every fresh run at base passed. The rest gets the name it deserves, and
a reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from bot.campaigns.doubting import eased, full, slow
from bot.store.models import Finding, Standing
from fuzzing.outcomes import Outcome, Verdict

NO_BASE = "there is no base to compare with"
BASE_NOT_RUN = "base was not run within the budget: another run goes on there, a larger one is `budget`"
NOT_REPEATED = "not repeated in fresh processes within the budget: another run goes on there"
LATER = "the machine's doing; the next campaign runs it again"
SUPPORT_LOST = "unsupported at head, passes at base; what a compiler says it lacks is never filed as a bug"


class Runs(NamedTuple):
    """Fresh runs of a case on one side: `agreed` of `total` gave the first run's verdict and phase."""

    agreed: int = 0
    total: int = 0


@dataclass(frozen=True)
class Judgement:
    """What one case amounts to; the fields are those of `Finding`."""

    standing: Standing
    verdict: Verdict
    reason: str
    head: tuple[int, int]  # failed k of n runs
    base: tuple[int, int]


@dataclass(frozen=True)
class Seen:
    """All that was seen of one case. `compared` is whether the campaign has a base at all.

    again   its fresh runs at head
    """

    head: Outcome
    base: Outcome | None
    head_runs: Runs
    base_runs: Runs
    repeats: int
    compared: bool
    again: tuple[Outcome, ...] = ()


def finding_of(judgement: Judgement, campaign_id: int, case_id: str, signature: str) -> Finding:
    """The row of a case that amounts to something."""
    return Finding(
        campaign_id=campaign_id,
        case_id=case_id,
        standing=judgement.standing.value,
        verdict=judgement.verdict.value,
        signature=signature,
        reduced="",
        head_failed=judgement.head[0],
        head_runs=judgement.head[1],
        base_failed=judgement.base[0],
        base_runs=judgement.base[1],
        reason=judgement.reason,
    )


def judge(seen: Seen) -> Judgement | None:
    """The finding to be made of a case; None where there is nothing to say."""
    if seen.head.verdict.accuses:
        return _accused(seen)
    if seen.base is None:
        return None
    if seen.head.verdict is Verdict.UNSUPPORTED and seen.base.verdict is Verdict.PASS:
        return _finding(seen, Standing.SUPPORT_LOST, SUPPORT_LOST)
    if seen.head.verdict is Verdict.PASS and seen.base.verdict.accuses:
        reason = f"{_words(seen.base)} at base, passes at head"
        return Judgement(Standing.FIXED, seen.base.verdict, reason, (0, 1), (1, 1))
    return None


def _accused(seen: Seen) -> Judgement:
    if what := full(seen.head):
        return _finding(seen, Standing.INFRASTRUCTURE, f"{what}: {LATER}")
    if seen.compared and seen.base is None:
        return _finding(seen, Standing.UNJUDGED, BASE_NOT_RUN)
    if seen.base is not None and seen.base.verdict.accuses:
        return _finding(seen, Standing.ALREADY_BROKEN, f"{_words(seen.base)} at base too")
    if seen.base is not None and seen.base.verdict is not Verdict.PASS:
        return _finding(seen, Standing.UNJUDGED, f"cannot be compared: {_words(seen.base)} at base")
    agreed, total = seen.head_runs
    if agreed < total:
        return _unsteady(seen)
    if total < seen.repeats:
        return _finding(seen, Standing.UNJUDGED, NOT_REPEATED)
    if seen.base is None:
        return _finding(seen, Standing.UNJUDGED, NO_BASE)
    return _beside_passing_base(seen, f"{_words(seen.head)} at head, passes at base")


def _unsteady(seen: Seen) -> Judgement:
    """What did not repeat: the machine's doing, a slow case, a flaky program, or a flaky compiler."""
    if why := eased(seen.head, seen.again):
        return _finding(seen, Standing.INFRASTRUCTURE, f"{why}: {LATER}")
    if why := slow(seen.head, seen.again):
        return _finding(seen, Standing.UNJUDGED, why)
    agreed, total = seen.head_runs
    reason = f"{_words(seen.head)} in {agreed} of {total} fresh runs at head"
    if any(one.verdict is Verdict.NONDETERMINISTIC for one in seen.again):
        return _finding(
            seen,
            Standing.FLAKY_PROGRAM,
            f"{reason}; the library itself answers now so, now so, so that nothing is said of the compiler",
        )
    return _finding(seen, Standing.FLAKY, f"{reason}: it comes and goes, which no change is blamed for")


def _beside_passing_base(seen: Seen, reason: str) -> Judgement:
    passed, total = seen.base_runs
    if passed < total:
        return _finding(
            seen, Standing.FLAKY, f"passes in only {passed} of {total} fresh runs at base: not new here"
        )
    if total < seen.repeats:
        return _finding(seen, Standing.UNJUDGED, f"base: {NOT_REPEATED}")
    return _finding(seen, Standing.REGRESSION, reason)


def _finding(seen: Seen, standing: Standing, reason: str) -> Judgement:
    head = (seen.head_runs.agreed, seen.head_runs.total) if seen.head_runs.total else (1, 1)
    return Judgement(standing, seen.head.verdict, reason, head, _base_counts(seen))


def _base_counts(seen: Seen) -> tuple[int, int]:
    """How often base failed: of its fresh runs, or of its one ordinary run where it was not repeated."""
    if seen.base is None:
        return 0, 0
    agreed, total = seen.base_runs
    if total == 0:
        return int(seen.base.verdict is not Verdict.PASS), 1
    return (total - agreed if seen.base.verdict is Verdict.PASS else agreed), total


def _words(outcome: Outcome) -> str:
    return f"{outcome.verdict.value.replace('_', ' ')} in {outcome.phase.value}"
