"""Reduces several failing cases; a failure in one does not stop the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fuzzing.cases import TestCase
from fuzzing.errors import UsageError
from fuzzing.outcomes import Outcome
from fuzzing.reduce.engine import Step
from fuzzing.reduce.reduction import Reducer
from fuzzing.triage.traits import Traits


@dataclass(frozen=True)
class ReducedCase:
    """The result of reducing a failing case.

    case            the smallest found, or the original one
    outcome         of `case`
    reduced         whether it is the result of a reduction, confirmed in a fresh process
    runs            candidates that were run; `replayed` were known from an earlier reduction
    failure_reason  why it is not reduced; "" if it is
    traits          of the reduced case, None if it is not reduced
    """

    case: TestCase
    outcome: Outcome
    reduced: bool
    runs: int = 0
    replayed: int = 0
    failure_reason: str = ""
    traits: Traits | None = None


def reduced(
    reducer: Reducer,
    case: TestCase,
    first: Outcome,
    journal: Path | None = None,
    progress: Callable[[Step], None] | None = None,
) -> ReducedCase:
    """Reduces `case`, whose outcome was `first`; if that fails, the case is unchanged and has the reason."""
    try:
        found = reducer.reduce(case, first, journal=journal, progress=progress)
    except UsageError as error:
        return ReducedCase(case, first, False, failure_reason=str(error))
    failure_reason = "" if found.confirmed else "no smaller case failed in a fresh process"
    runs, replayed = found.reduced.runs, found.reduced.replayed
    traits = found.traits if found.confirmed else None
    return ReducedCase(found.case, found.outcome, found.confirmed, runs, replayed, failure_reason, traits)
