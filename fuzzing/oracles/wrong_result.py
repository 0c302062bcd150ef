"""Wrong result: outputs that differ from the reference by more than the profile allows."""

from __future__ import annotations

from fuzzing.oracles.decision import Decision, OracleInput, decide_wrong_result, register_oracle
from fuzzing.oracles.output_comparison import compare


@register_oracle(rank=60)
def wrong_result(oracle_input: OracleInput) -> Decision | None:
    """Decides if any output is missing, of another type or shape, or off in value."""
    case, execution = oracle_input.case, oracle_input.execution
    if execution.ending != "returned" or execution.matches_expected or case.expected is None:
        return None
    mismatches = compare(
        case.expected,
        execution.outputs,
        tolerance=case.tolerance,
        comparison=case.comparison,
        profile=oracle_input.profile,
        computed_in=oracle_input.computed_in,
    )
    return decide_wrong_result(mismatches) if mismatches else None
