"""Crash: an exception, a signal or an exit where outputs should have come."""

from __future__ import annotations

from fuzzing.execute.execution import Execution
from fuzzing.oracles.judging import Ruling, Trial, register_oracle
from fuzzing.outcomes import Verdict
from fuzzing.triage.messages import blame


@register_oracle(rank=50)
def crash(trial: Trial) -> Ruling | None:
    """Speaks for whatever ended a case before its outputs."""
    execution = trial.execution
    if execution.ending == "raised":
        said = blame(execution.message).headline
        error = execution.error.rsplit(".", 1)[-1]
        what = f"{error}: {said}" if said else error
        return Ruling(Verdict.CRASH, f"{what} ({trial.where})")
    if execution.ending == "killed":
        return Ruling(Verdict.CRASH, f"{_death(execution)} {trial.where}")
    return None


def _death(execution: Execution) -> str:
    if execution.signal:
        return f"the process died of {execution.signal}"
    code = "" if execution.exit_code is None else f" with code {execution.exit_code}"
    return f"the process ended itself{code}"
