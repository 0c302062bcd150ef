"""Changes that no verdict shows: head and base both fail, or both pass, with other evidence. Pure functions.

They are reported and never filed (`Classification.CHANGED`): two failures of one case are one at most, and
where the reference does not decide an output, any value passes.
"""

from __future__ import annotations

from collections.abc import Sequence

from fuzzing.outcomes import Mismatch, Outcome, Verdict
from fuzzing.triage.signature import compute_signature

#: Two wrong numbers are one if they are nearer than this share of the error; an estimate, for sums in another
#: order.
_SAME_SHARE = 0.01


def describe_change(head: Outcome, base: Outcome) -> str:
    """How head differs from base, where that is neither a regression nor a fix; "" if it does not.

    A pass differs if base gave what the reference has, and head what the reference does not decide.
    """
    if head.verdict is base.verdict is Verdict.PASS:
        departed = head.evidence.excused and not base.evidence.excused
        return f"equals the reference at base, and not at head: {head.summary}" if departed else ""
    if not base.verdict.is_failure or not (head.verdict.is_failure or head.verdict is Verdict.UNSUPPORTED):
        return ""
    if (head.verdict, head.phase) != (base.verdict, base.phase):
        return f"{base.summary} at base; {head.summary} at head"
    if _complaint(head) != _complaint(base):
        return f"another failure at base: {base.summary}"
    return "" if _same_numbers(head, base) else f"other wrong outputs at base: {base.summary}"


def is_steady(first: Outcome, reruns: Sequence[Outcome], repeats: int) -> bool:
    """Whether fresh runs, at least `repeats` of them, show what the first run showed."""
    return len(reruns) >= repeats and all(
        (one.verdict, one.phase) == (first.verdict, first.phase)
        and bool(one.evidence.excused) == bool(first.evidence.excused)
        and not describe_change(first, one)
        for one in reruns
    )


def _complaint(outcome: Outcome) -> tuple[str, str]:
    """The error's class and message without what varies; frames, which refactoring renames, do not count."""
    fields = compute_signature(outcome, "").fields
    return str(fields["error"]), str(fields["complaint"])


def _same_numbers(head: Outcome, base: Outcome) -> bool:
    mine, other = head.evidence.mismatches, base.evidence.mismatches
    return len(mine) == len(other) and all(map(_same_mismatch, mine, other))


def _same_mismatch(one: Mismatch, other: Mismatch) -> bool:
    if (one.output, one.kind, one.worst) != (other.output, other.kind, other.worst):
        return False
    if one.kind != "value" or one.got == other.got:
        return one.detail == other.detail or one.kind == "value"
    try:
        gap = abs(complex(one.got) - complex(other.got))
    except ValueError:  # a string or a bool
        return False
    return gap <= _SAME_SHARE * max(one.max_abs or 0.0, other.max_abs or 0.0)
