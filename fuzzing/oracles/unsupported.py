"""Unsupported: the compiler says that it does not do this. Counted and shown, never a bug."""

from __future__ import annotations

import re

from fuzzing.oracles.judging import Ruling, Trial, register_oracle
from fuzzing.outcomes import Verdict

#: What a backend raises itself where the compiler's API cannot even express the case's inputs.
_BY_BACKEND = "Unsupported"


@register_oracle(rank=40)
def unsupported(trial: Trial) -> Ruling | None:
    """Speaks when class and text of an exception are among those the backend lists."""
    execution = trial.execution
    if execution.ending != "raised":
        return None
    if execution.error == _BY_BACKEND:
        return Ruling(Verdict.UNSUPPORTED, execution.message)
    for error, message, why in trial.backend.unsupported:
        found = re.search(message, execution.message)
        if found and re.search(error, execution.error):
            return Ruling(Verdict.UNSUPPORTED, found.expand(why))
    return None
