"""Crash: an exception, a signal or an exit instead of outputs."""

from __future__ import annotations

from fuzzing.compiler_messages import parse_message
from fuzzing.execution import Execution
from fuzzing.oracles.decision import Decision, OracleInput, register_oracle
from fuzzing.outcomes import Verdict


@register_oracle(rank=50)
def crash(oracle_input: OracleInput) -> Decision | None:
    """Decides every case that ended before its outputs."""
    execution = oracle_input.execution
    if execution.ending == "raised":
        headline = parse_message(execution.message).headline
        error = execution.error.rsplit(".", 1)[-1]
        what = f"{error}: {headline}" if headline else error
        return Decision(Verdict.CRASH, f"{what} ({oracle_input.where})")
    if execution.ending == "killed":
        return Decision(Verdict.CRASH, f"{_describe_exit(execution)} {oracle_input.where}")
    return None


def _describe_exit(execution: Execution) -> str:
    if execution.signal:
        return f"the process died of {execution.signal}"
    code = "" if execution.exit_code is None else f" with code {execution.exit_code}"
    return f"the process ended itself{code}"
