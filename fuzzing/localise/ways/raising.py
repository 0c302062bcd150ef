"""The pass in which the compiler raised an exception, or died."""

from __future__ import annotations

from fuzzing.execute.bench import Seen
from fuzzing.localise.facts import Fact
from fuzzing.localise.failure import Failure
from fuzzing.localise.ways.base import register_way
from fuzzing.outcomes import Phase, Verdict


@register_way("raising")
def raising(failure: Failure) -> Fact | None:
    """The pass that had begun and had not ended; of passes in passes the innermost."""
    applies = failure.outcome.verdict is not Verdict.WRONG_RESULT and failure.outcome.phase is Phase.COMPILE
    if not applies or not failure.noted("entered"):
        return None
    if not failure.undisturbed:
        return Fact("raising", (), "when it was watched it did not fail, or otherwise")
    inside = begun(failure.seen)
    if not inside:
        return Fact("raising", (), "every pass that began had ended: it is in none of those that tell of it")
    where = f"{inside[-1]} had begun and did not end"
    around = f", inside {' in '.join(reversed(inside[:-1]))}" if inside[1:] else ""
    return Fact("raising", (inside[-1],), where + around)


def begun(seen: Seen) -> list[str]:
    """The passes that had begun and not ended at the end of what was seen, outermost first."""
    stack: list[str] = []
    for what, name in seen:
        if what == "entered":
            stack.append(name)
        elif what == "left" and name in stack:
            del stack[len(stack) - 1 - stack[::-1].index(name) :]
    return stack
