"""What is wrong upstream: a failure that only shows what a part before it computed wrongly.

A reduction keeps the symptom, and so ends at whatever shows it. Where a Shape ignores its `end`, one case
ends in the Concat behind it, another in a Transpose behind that, and by their signatures they are two bugs.
But the Shape is wrong by itself, and what it feeds is right once it gets what the library computes: that is
evidence of one bug, and that it is the Shape's. Both are run; where either is not so, the reduction stands
for itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from fuzzing.cases import TestCase
from fuzzing.outcomes import Outcome, Verdict
from fuzzing.reduce.formats import ProgramFormat

T = TypeVar("T")

#: Ours: cuts at which the rest is tried; reduced graphs have two to four nodes.
_CUTS = 4

#: Runs a case on the accused compiler.
Run = Callable[[TestCase], Outcome]


def find_root_cause(whole: T, program_format: ProgramFormat[T], run: Run) -> tuple[T, Outcome] | None:
    """The shortest beginning that gives wrong results by itself, and what it does.

    None where there is none, or where nothing that it feeds is right without it. The longest beginning is
    asked first, so that most cases cost one run; then it is bisection, which takes for granted that what
    follows a failure does not mend it. What is left behind it is asked from the nearest cut on: fed rightly,
    what comes next may have a bug of its own, and what comes behind that is as good a witness.
    """
    seen: dict[int, Outcome | None] = {}

    def fails(at: int) -> bool:
        if at not in seen:
            parts = program_format.split(whole, at)
            seen[at] = None if parts is None else run(program_format.case(parts[0]))
        outcome = seen[at]
        return outcome is not None and outcome.verdict.is_failure

    last = program_format.parts(whole) - 1
    while last > 1 and program_format.split(whole, last) is None:  # no value is known of what flows there
        last -= 1
    if last < 1 or not fails(last):
        return None
    low, high = 1, last
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fails(middle) else (middle + 1, high)
    parts, outcome = program_format.split(whole, high), seen[high]
    if parts is None or outcome is None or outcome.verdict is not Verdict.WRONG_RESULT:
        return None
    if not _rest_passes(whole, program_format, run, range(high, last + 1)):
        return None
    return parts[0], outcome


def _rest_passes(whole: T, program_format: ProgramFormat[T], run: Run, cuts: range) -> bool:
    """Whether something of what is left behind one of these cuts passes, given what the library computes."""
    for at in cuts[:_CUTS]:
        parts = program_format.split(whole, at)
        if parts is not None and run(program_format.case(parts[1])).verdict is Verdict.PASS:
            return True
    return False
