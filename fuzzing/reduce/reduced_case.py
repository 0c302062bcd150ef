"""Many failing cases made small, none of which may stop the others."""

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
    """What is left of a failing case.

    case     the smallest found, or the case one began with where nothing smaller held
    outcome  what it does
    reduced  whether it is what a reduction left, confirmed in a fresh process
    runs     candidates that were run; `replayed` were known from an earlier try
    failure_reason  why it is not reduced; "" if it is
    traits   what is left of it says, None where it is not reduced
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
    """Makes `case`, which did `first`, small; what cannot be reduced stays as it is and says why."""
    try:
        found = reducer.reduce(case, first, journal=journal, progress=progress)
    except UsageError as error:
        return ReducedCase(case, first, False, failure_reason=str(error))
    failure_reason = "" if found.confirmed else "the smallest one did not fail in a fresh process"
    runs, replayed = found.reduced.runs, found.reduced.replayed
    traits = found.traits if found.confirmed else None
    return ReducedCase(found.case, found.outcome, found.confirmed, runs, replayed, failure_reason, traits)
