"""Unsupported: the compiler says that it does not do this. Counted and shown, never a bug."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from fuzzing.oracles.judging import Ruling, Trial, register_oracle
from fuzzing.outcomes import Verdict

#: What a backend raises itself where the compiler's API cannot even express the case's inputs.
_BY_BACKEND = "Unsupported"


class _Saying(NamedTuple):
    """An exception by which a backend says so, made ready: a campaign sees thousands."""

    error: re.Pattern[str]
    message: re.Pattern[str]
    why: tuple[str, ...]  # text and numbers of groups in turn

    def reason(self, error: str, message: str) -> str:
        """Why, if it is said by this class and this text; "" if not."""
        found = self.message.search(message)
        if not found or not self.error.search(error):
            return ""
        return "".join((found[int(part)] or "") if place % 2 else part for place, part in enumerate(self.why))


@cache
def _sayings(patterns: tuple[tuple[str, str, str], ...]) -> tuple[_Saying, ...]:
    return tuple(
        _Saying(re.compile(error), re.compile(message), tuple(re.split(r"\\(\d)", why)))
        for error, message, why in patterns
    )


@register_oracle(rank=40)
def unsupported(trial: Trial) -> Ruling | None:
    """Speaks when class and text of an exception are among those the backend lists."""
    execution = trial.execution
    if execution.ending != "raised":
        return None
    if execution.error == _BY_BACKEND:
        return Ruling(Verdict.UNSUPPORTED, execution.message)
    for saying in _sayings(trial.backend.unsupported):
        if why := saying.reason(execution.error, execution.message):
            return Ruling(Verdict.UNSUPPORTED, why)
    return None
