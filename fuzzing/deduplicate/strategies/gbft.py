"""Graph-based fuzz testing's de-duplication: error and operator; structure, where numbers differ."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fuzzing.deduplicate.strategies.base import Failure, register_strategy
from fuzzing.outcomes import Phase, Verdict
from fuzzing.triage.traits import read_traits

#: An error code in a message: the number that onnxruntime and MNN put into theirs.
_CODE = re.compile(r"(?:code|ERROR|\]) ?[:=]? ?(-?\d+)\b")


@register_strategy("gbft")
def by_error_or_structure(failures: Sequence[Failure]) -> list[str]:
    """Failing to convert or to run: error type, error code, operator. Other data: structure and operator.

    The failing operator is the one that the message names, where it names one of the case's; else it is not
    known which, and all of them count.
    """
    return [_label(failure) for failure in failures]


def _label(failure: Failure) -> str:
    outcome = failure.outcome
    operators = read_traits(failure.case).operators
    if outcome.verdict is Verdict.WRONG_RESULT:
        return repr(("DCF", read_traits(failure.case).pattern, operators))
    kind = "IF" if outcome.phase is Phase.RUN else "MCF"
    message = outcome.evidence.message
    code = _CODE.search(message)
    named = tuple([op for op in operators if re.search(rf"\b{re.escape(op)}\b", message)])
    error = outcome.evidence.error or outcome.evidence.signal or outcome.verdict.value
    return repr((kind, error, code[1] if code else "", named or operators))
