"""Unsupported: the compiler says that it does not do this. Counted and shown, never a bug."""

from __future__ import annotations

import re

from fuzzing.oracles.judging import Ruling, Trial, register_oracle
from fuzzing.outcomes import Verdict


@register_oracle(rank=40)
def unsupported(trial: Trial) -> Ruling | None:
    """Speaks when class and text of an exception are among those the backend lists."""
    execution = trial.execution
    if execution.ending != "raised":
        return None
    for error, message, why in trial.backend.unsupported:
        if re.search(error, execution.error) and re.search(message, execution.message):
            return Ruling(Verdict.UNSUPPORTED, why)
    return None
