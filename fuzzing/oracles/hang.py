"""Hang: a phase that exceeded its time limit."""

from __future__ import annotations

from fuzzing.oracles.decision import Decision, OracleInput, register_oracle
from fuzzing.outcomes import Verdict


@register_oracle(rank=20)
def hang(oracle_input: OracleInput) -> Decision | None:
    """Decides if the supervisor ended a phase at its limit."""
    if oracle_input.execution.ending != "hung":
        return None
    spent = oracle_input.execution.durations.get(oracle_input.execution.phase.value)
    after = "" if spent is None else f" after {spent:.0f} s"
    return Decision(Verdict.HANG, f"no end {oracle_input.where}{after}")
