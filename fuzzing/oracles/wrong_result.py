"""Wrong result: outputs that differ from the reference by more than the profile allows."""

from __future__ import annotations

from fuzzing.oracles.compare import compare
from fuzzing.oracles.judging import Ruling, Trial, register_oracle
from fuzzing.outcomes import Verdict


@register_oracle(rank=60)
def wrong_result(trial: Trial) -> Ruling | None:
    """Speaks when any output is missing, of another type or shape, or off in value."""
    case, execution = trial.case, trial.execution
    if execution.ending != "returned" or case.expected is None:
        return None
    mismatches = compare(
        case.expected,
        execution.outputs,
        tolerance=case.tolerance,
        comparison=case.comparison,
        profile=trial.profile,
    )
    if not mismatches:
        return None
    first = mismatches[0]
    count = "" if len(mismatches) == 1 else f" (and {len(mismatches) - 1} more)"
    return Ruling(Verdict.WRONG_RESULT, f"output {first.output}: {first.detail}{count}", mismatches)
