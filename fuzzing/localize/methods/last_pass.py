"""The pass in which the compiler raised an exception, or died."""

from __future__ import annotations

from fuzzing.execute.evaluator import Notes
from fuzzing.localize.facts import Fact
from fuzzing.localize.failing_case import FailingCase
from fuzzing.localize.methods.base import register_method
from fuzzing.outcomes import Phase, Verdict


@register_method("last_pass")
def last_pass(failure: FailingCase) -> Fact | None:
    """The pass that had begun and had not ended; of passes in passes the innermost."""
    applies = failure.outcome.verdict is not Verdict.WRONG_RESULT and failure.outcome.phase is Phase.COMPILE
    if not applies or not failure.noted_names("entered"):
        return None
    if not failure.fails_when_watched:
        return Fact("last_pass", (), "it did not fail in the same way while it was instrumented")
    inside = find_open_passes(failure.notes)
    if not inside:
        return Fact("last_pass", (), "every recorded pass that began had ended")
    where = f"{inside[-1]} had begun and did not end"
    around = f", inside {' in '.join(reversed(inside[:-1]))}" if inside[1:] else ""
    return Fact("last_pass", (inside[-1],), where + around)


def find_open_passes(notes: Notes) -> list[str]:
    """The passes that had begun and not ended at the end of what was seen, outermost first."""
    stack: list[str] = []
    for what, name in notes:
        if what == "entered":
            stack.append(name)
        elif what == "left" and name in stack:
            del stack[len(stack) - 1 - stack[::-1].index(name) :]
    return stack
