"""Unsupported: the compiler says that it does not do this. Counted and shown, never a bug."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from fuzzing.oracles.decision import Decision, OracleInput, register_oracle
from fuzzing.outcomes import Verdict

#: What a backend raises itself where the compiler's API cannot even express the case's inputs.
_BACKEND_EXCEPTION = "Unsupported"


class _CompiledPattern(NamedTuple):
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
def _compile_patterns(patterns: tuple[tuple[str, str, str], ...]) -> tuple[_CompiledPattern, ...]:
    return tuple(
        _CompiledPattern(re.compile(error), re.compile(message), tuple(re.split(r"\\(\d)", why)))
        for error, message, why in patterns
    )


@register_oracle(rank=40)
def unsupported(oracle_input: OracleInput) -> Decision | None:
    """Speaks when class and text of an exception are among those the backend lists."""
    execution = oracle_input.execution
    if execution.ending != "raised":
        return None
    if execution.error == _BACKEND_EXCEPTION:
        return Decision(Verdict.UNSUPPORTED, execution.message)
    for pattern in _compile_patterns(oracle_input.backend.unsupported):
        if why := pattern.reason(execution.error, execution.message):
            return Decision(Verdict.UNSUPPORTED, why)
    return None
