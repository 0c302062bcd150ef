"""Invalid: a case that fails in its own library, and so is no test of a compiler."""

from __future__ import annotations

from fuzzing.oracles.decision import Decision, OracleInput, register_oracle
from fuzzing.oracles.pair_sides import BOTH_SIDES
from fuzzing.oracles.reference import needs_reference
from fuzzing.outcomes import Verdict


@register_oracle(rank=10)
def invalid(oracle_input: OracleInput) -> Decision | None:
    """Decides if there is no reference, or if both sides of a pair raised."""
    if oracle_input.execution.error == BOTH_SIDES:
        return Decision(Verdict.INVALID, oracle_input.execution.message)
    if not needs_reference(oracle_input.case):
        return None
    return Decision(Verdict.INVALID, "no reference: the case's own library could not run it")
