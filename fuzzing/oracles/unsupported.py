"""Unsupported: the compiler reports a missing feature. Counted and shown, but not a bug."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from fuzzing.oracles.decision import Decision, OracleInput, register_oracle
from fuzzing.oracles.pair_sides import raised_error
from fuzzing.outcomes import Verdict

#: Raised by a backend if the compiler's API cannot express the case's inputs.
_BACKEND_EXCEPTION = "Unsupported"


class _CompiledPattern(NamedTuple):
    """A compiled UnsupportedPattern: a campaign matches thousands."""

    error: re.Pattern[str]
    message: re.Pattern[str]
    why: tuple[str, ...]  # alternating text and group numbers

    def reason(self, error: str, message: str) -> str:
        """The reason, if the class and text match; "" if not."""
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
    """Decides if class and text of an exception match one of the backend's patterns."""
    execution = oracle_input.execution
    if execution.ending != "raised":
        return None
    error, message = raised_error(execution.error, execution.message)
    if execution.error == _BACKEND_EXCEPTION:
        return Decision(Verdict.UNSUPPORTED, execution.message)
    for pattern in _compile_patterns(oracle_input.backend.unsupported):
        if why := pattern.reason(error, message):
            return Decision(Verdict.UNSUPPORTED, why)
    return None
