"""OPERA's de-duplication: by the converter's function that handles the operator, else by the error."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fuzzing.deduplicate.strategies.base import Failure, register_strategy
from fuzzing.outcomes import Verdict
from fuzzing.triage.traits import read_traits

#: What its released filter drops of a message: text in brackets.
_BRACKETED = re.compile(r"\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}")
#: How frontends call the function of an operator: `convert_x` in TVM's older ones and Torch-TensorRT,
#: `translate_x` in OpenVINO's.
_CONVERTER = re.compile(r"[:.]_?(?:convert|translate)_\w+$")


@register_strategy("opera")
def by_converter(failures: Sequence[Failure]) -> list[str]:
    """Compiler, frontend, and the converter's function where the stack names one.

    Where it names none: the exception's class, the innermost frame and the last line of its message without
    what is in brackets (released code); for wrong results, which have no message, the operators.
    """
    return [_label(failure) for failure in failures]


def _label(failure: Failure) -> str:
    seen = failure.outcome.evidence
    about = (failure.outcome.backend, failure.frontend)
    for frame in reversed(seen.traceback):
        if _CONVERTER.search(frame):
            return repr((*about, frame))
    if failure.outcome.verdict is not Verdict.CRASH:
        return repr((*about, failure.outcome.verdict.value, read_traits(failure.case).operators))
    last = next((line for line in reversed(seen.message.splitlines()) if line.strip()), "")
    where = seen.traceback[-1] if seen.traceback else seen.signal
    return repr((*about, seen.error, where, " ".join(_BRACKETED.sub("", last).split())))
