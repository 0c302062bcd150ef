"""Failures that a busy or full machine may have caused. Pure functions.

A case that hangs or runs out of memory runs again alone, with more of both, before it counts (syzbot
multiplies its timeouts by 3, later 20: pkg/repro; one step is enough for our limits, see
`fuzzing.execute.limits`).
"""

from __future__ import annotations

from collections.abc import Sequence

from fuzzing.exhausted_resources import exhausted_resource
from fuzzing.outcomes import Outcome, Verdict

#: By how much limits are multiplied for the run that must show a hang again.
RETRY_LIMIT_FACTOR = 3.0

_PAST = "above its limit, which `limits` can raise"


def needs_rerun(outcome: Outcome) -> bool:
    """Whether an outcome must repeat with more time and memory before it counts."""
    return outcome.verdict in (Verdict.HANG, Verdict.OUT_OF_MEMORY)


def exhausted_resource_of(outcome: Outcome) -> str:
    """The resource that the machine lacked according to a crash, "" if none is named."""
    evidence = outcome.evidence
    found = exhausted_resource(f"{evidence.message}\n{evidence.log}\n{evidence.native}")
    return found if outcome.verdict is Verdict.CRASH else ""


def recovered_alone(first: Outcome, reruns: Sequence[Outcome]) -> str:
    """Why the machine caused a hang or out-of-memory failure, "" if it did not.

    The rerun alone passed, and took less than the first run had.
    """
    if not needs_rerun(first) or not reruns or reruns[0].verdict is not Verdict.PASS:
        return ""
    if first.verdict is Verdict.HANG:
        had, took = (one.durations.get(first.phase.value, 0.0) for one in (first, reruns[0]))
        if took < had:
            return f"no end in {first.phase.value} after {had:.0f} s beside other cases, {took:.1f} s alone"
        return ""
    if reruns[0].peak_bytes < first.peak_bytes:
        return "out of memory beside other cases, not alone, with less of it used"
    return ""


def exceeded_limit(first: Outcome, reruns: Sequence[Outcome]) -> str:
    """Why a hang or out-of-memory failure is only a limit that was too low, "" if it may be a bug."""
    if (
        not needs_rerun(first)
        or not reruns
        or reruns[0].verdict is not Verdict.PASS
        or recovered_alone(first, reruns)
    ):
        return ""
    if first.verdict is Verdict.HANG:
        took = reruns[0].durations.get(first.phase.value, 0.0)
        return f"ends after {took:.0f} s in {first.phase.value}: {_PAST}, but no hang"
    return f"needs {reruns[0].peak_bytes / 2**30:.1f} GiB: {_PAST}, but no more"
