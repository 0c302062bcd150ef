"""Validates a worker's answer, which may be corrupt, and turns it into an execution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fuzzing.cases import TestCase
from fuzzing.execute.batches import Answer
from fuzzing.execute.case_cache import CachedCase
from fuzzing.execute.protocol import PHASES, ProtocolError, decode_values
from fuzzing.execution import Execution, MatchingExecution
from fuzzing.outcomes import MAX_TEXT, Phase

#: The text between two positions in a log.
LogTail = Callable[[int, int], str]

_NAMES = tuple(phase.value for phase in PHASES[1:])


def parse_execution(answer: Answer, case: TestCase, peak: int, log_tail: LogTail) -> Execution:
    """The execution of `case` that an answer describes; raises ProtocolError if the answer is malformed."""
    marks = answer.marks
    durations = {
        name: (end - begin) / 1e9 for name, begin, end in zip(_NAMES, marks, marks[1:], strict=False)
    }
    if answer.error is not None:
        return _raised(answer, answer.error, durations, peak, log_tail)
    if isinstance(case, CachedCase) and case.expects(answer.size, answer.data):
        notes = {"durations": durations, "peak_bytes": peak, "notes": answer.notes}
        return MatchingExecution.of(case, case.count, notes)
    outputs = tuple(decode_values(answer.size, answer.data))
    return Execution("returned", Phase.RUN, durations, outputs=outputs, peak_bytes=peak, notes=answer.notes)


def _raised(
    answer: Answer, fields: dict[str, Any], durations: dict[str, float], peak: int, log_tail: LogTail
) -> Execution:
    try:
        begin, end = map(int, fields["log"])
        return Execution(
            "raised",
            PHASES[max(1, len(durations))],
            durations,
            error=str(fields["error"])[:200],
            message=str(fields["message"])[:MAX_TEXT],
            traceback=tuple(str(frame)[:500] for frame in fields["traceback"]),
            log=log_tail(begin, end) if begin != end else "",
            peak_bytes=peak,
            notes=answer.notes,
        )
    # OSError: a position before the log
    except (KeyError, TypeError, ValueError, OverflowError, OSError) as error:
        raise ProtocolError(f"a worker sent an answer that is none: {error!r}") from None
