"""Invalid: a case that fails in its own library says nothing about any compiler."""

from __future__ import annotations

from fuzzing.oracles.judging import Ruling, Trial, register_oracle
from fuzzing.oracles.reference import reference_needed
from fuzzing.outcomes import Verdict


@register_oracle(rank=10)
def invalid(trial: Trial) -> Ruling | None:
    """Speaks when no reference could be had."""
    if not reference_needed(trial.case):
        return None
    return Ruling(Verdict.INVALID, "no reference: the case's own library could not run it")
