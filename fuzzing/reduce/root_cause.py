"""Root causes: the part of a program that is wrong by itself before the part that shows the failure.

A reduction keeps the symptom and so ends at the operator that shows it. If a Shape ignores its `end`, one
case ends in the Concat after it and another in a Transpose after that: two signatures of one bug. The Shape
is the root if it is wrong by itself and the rest passes on the library's values. Both are run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from fuzzing.cases import TestCase
from fuzzing.outcomes import Outcome, Verdict
from fuzzing.reduce.formats import ProgramFormat

T = TypeVar("T")

#: An estimate: cuts at which the rest is tried; reduced graphs have two to four nodes.
_CUTS = 4

#: Runs a case on the failing compiler.
Run = Callable[[TestCase], Outcome]


def find_root_cause(whole: T, program_format: ProgramFormat[T], run: Run) -> tuple[T, Outcome] | None:
    """The shortest beginning that gives wrong results by itself, and its outcome.

    None if there is none, or if nothing after it passes without it. The longest beginning is run first, so
    that most cases cost one run; bisection follows and assumes that later parts do not repair a failure. The
    rest is run from the nearest cut on, because the next part may have a bug of its own.
    """
    seen: dict[int, Outcome | None] = {}

    def fails(at: int) -> bool:
        if at not in seen:
            parts = program_format.split(whole, at)
            seen[at] = None if parts is None else run(program_format.case(parts[0]))
        outcome = seen[at]
        return outcome is not None and outcome.verdict.is_failure

    last = program_format.parts(whole) - 1
    while last > 1 and program_format.split(whole, last) is None:  # the values at this cut are unknown
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
    """Whether the rest after any of these cuts passes on the library's values."""
    for at in cuts[:_CUTS]:
        parts = program_format.split(whole, at)
        if parts is not None and run(program_format.case(parts[1])).verdict is Verdict.PASS:
            return True
    return False
