"""Doubting: what may be the machine's doing rather than the compiler's. Pure functions.

A hang, or a lack of memory or space, speaks of a busy or full machine as well as of a compiler. So a case
that hangs or runs out of memory is run again alone and with more of both before it accuses, as syzbot's
timeouts climb (pkg/repro: first 3 times the usual, later 20 times; one step is enough for limits that are ten
thousand times the usual already, see `fuzzing.execute.limits`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from fuzzing.outcomes import Outcome, Verdict

#: By how much limits are multiplied for the run that must show a hang again.
RETRY_LIMIT_FACTOR = 3.0

#: What the C library says where the machine has run out of something that no case is meant to fill:
#: ENOSPC, EDQUOT, EMFILE, ENFILE, EAGAIN of fork (errno(3)).
_FULL = re.compile(
    r"\b(No space left on device|Disk quota exceeded|Too many open files|Resource temporarily unavailable)\b"
)


#: What a case took more than: the configuration decides how much it may.
_PAST = "past its limit, which `limits` can raise"


def needs_rerun(outcome: Outcome) -> bool:
    """Whether an outcome must show again with more time and memory before it accuses."""
    return outcome.verdict in (Verdict.HANG, Verdict.OUT_OF_MEMORY)


def exhausted_resource_of(outcome: Outcome) -> str:
    """What the machine had run out of, as the failure's message says; "" if it does not."""
    evidence = outcome.evidence
    found = exhausted_resource(f"{evidence.message}\n{evidence.log}\n{evidence.native}")
    return found if outcome.verdict is Verdict.CRASH else ""


def exhausted_resource(words: str) -> str:
    """What a machine had run out of, by words that tell of it; "" if they do not."""
    found = _FULL.search(words)
    return found[0] if found else ""


def recovered_alone(first: Outcome, reruns: Sequence[Outcome]) -> str:
    """Why a doubtful outcome was the machine's doing, by its runs alone and with more; "" if it was not.

    With more of both the case got through, and took less than it had had the first time.
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
    """Why a doubtful outcome is none, though the machine was not to blame; "" if it may be one."""
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
