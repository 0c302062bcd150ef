"""Hang: a phase that was ended for taking too long."""

from __future__ import annotations

from fuzzing.oracles.judging import Ruling, Trial, register_oracle
from fuzzing.outcomes import Verdict


@register_oracle(rank=20)
def hang(trial: Trial) -> Ruling | None:
    """Speaks when the supervisor ended a phase at its limit."""
    if trial.execution.ending != "hung":
        return None
    spent = trial.execution.durations.get(trial.execution.phase.value)
    after = "" if spent is None else f" after {spent:.0f} s"
    return Ruling(Verdict.HANG, f"no end {trial.where}{after}")
