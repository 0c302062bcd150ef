"""The rung of the backend's ablation ladder on which the failure shows first."""

from __future__ import annotations

from fuzzing.localise.facts import Fact
from fuzzing.localise.failure import Failure
from fuzzing.localise.ways.base import register_way
from fuzzing.triage.ladder import climb


@register_way("ladder")
def ladder(failure: Failure) -> Fact | None:
    """What the first failing rung adds, as `fuzzing.triage.ladder` has it."""
    if not failure.backend.ladder:
        return None
    before = failure.runs
    blame = climb(failure.case, failure.outcome_on, failure.backend, failure.outcome)
    rungs = "; ".join(f"{options}: {verdict}" for options, verdict in blame.rungs)
    found = (blame.component,) if blame.component else ()
    return Fact("ladder", found, f"run with ever more of the compiler: {rungs}", failure.runs - before, True)
