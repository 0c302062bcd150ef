"""Wrong result: outputs that differ from the reference by more than the profile allows."""

from __future__ import annotations

from fuzzing.oracles.compare import compare
from fuzzing.oracles.judging import Ruling, Trial, register_oracle, wrong


@register_oracle(rank=60)
def wrong_result(trial: Trial) -> Ruling | None:
    """Speaks when any output is missing, of another type or shape, or off in value."""
    case, execution = trial.case, trial.execution
    if execution.ending != "returned" or execution.as_expected or case.expected is None:
        return None
    mismatches = compare(
        case.expected,
        execution.outputs,
        tolerance=case.tolerance,
        comparison=case.comparison,
        profile=trial.profile,
    )
    return wrong(mismatches) if mismatches else None
