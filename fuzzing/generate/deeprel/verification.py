"""Compares one call of two APIs: by value, or by whether they succeed."""

from __future__ import annotations

import enum
from typing import Literal

import numpy as np

from fuzzing.cases import Tensor, Value
from fuzzing.execution import Execution
from fuzzing.oracles.element_types import decode

Equivalence = Literal["value", "status"]
Outputs = tuple[tuple[str, Value], ...]

#: DeepREL's absolute tolerance (its classes/torch_library.py); the relative one is allclose's own.
ATOL, RTOL = 1e-5, 1e-5
#: Refusals because a type or an overload is missing rather than that the call is wrong: they do not break
#: status equivalence (DeepREL's matching.py).
_EXCUSED_MESSAGES = (
    "not implement",
    "invalid combination of argument",
    "a bool tensor is not supported",
    "not intended to support complex numbers",
    "not supported for",
)
_INTERNAL = "INTERNAL ASSERT FAILED"


class Outcome(enum.Enum):
    """The result of one call for a pair.

    SUCCESS         equivalent; FAIL: no evidence, as the source fails or the target is excused
    NOT_EQUIVALENT  the pair does not hold
    BUG             the library crashed, or an assertion of its own failed; ERROR: nothing to compare
    """

    SUCCESS = "success"
    FAIL = "fail"
    NOT_EQUIVALENT = "not_equivalent"
    BUG = "bug"
    ERROR = "error"


def compare_executions(
    source: Execution, target: Execution, equivalence: Equivalence, *, mutated: bool = False
) -> Outcome:
    """The outcome of a call of both APIs.

    mutated  not a recorded call, so the library may refuse it whatever the equivalence
    """
    for execution in (source, target):
        if is_bug(execution):
            return Outcome.BUG
        if execution.exhausted or execution.error == "Unsupported":
            return Outcome.ERROR
    if source.ending == "raised":
        return Outcome.FAIL
    if target.ending == "raised":
        lenient = mutated or equivalence == "status"
        excused = lenient and any(text in target.message for text in _EXCUSED_MESSAGES)
        return Outcome.FAIL if excused else Outcome.NOT_EQUIVALENT
    if not source.outputs or not target.outputs:
        return Outcome.ERROR  # neither returned anything that could be looked at
    if equivalence == "value" and not outputs_equal(source.outputs, target.outputs):
        return Outcome.NOT_EQUIVALENT
    return Outcome.SUCCESS


def is_bug(execution: Execution) -> bool:
    """Whether the library crashed in a call, or reported an error of its own."""
    return execution.ending == "killed" or _INTERNAL in execution.message


def outputs_equal(one: Outputs, other: Outputs) -> bool:
    """Whether two calls gave the same; a single output equals several if it equals any of them."""
    if len(one) == len(other):
        return all(values_close(a, b) for (_, a), (_, b) in zip(one, other, strict=True))
    if 1 not in (len(one), len(other)):
        return False
    return any(values_close(a, b) for _, a in one for _, b in other)


def values_close(one: Value, other: Value) -> bool:
    """Same type and shape, values within ATOL and RTOL; NaN equals NaN."""
    if not isinstance(one, Tensor) or not isinstance(other, Tensor):
        return one == other
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return False
    if one.data == other.data:
        return True
    left, right = decode(one.dtype, one.array()), decode(other.dtype, other.array())
    if left.dtype.kind not in "fc":
        return bool(np.array_equal(left, right))
    with np.errstate(all="ignore"):
        return bool(np.allclose(left, right, rtol=RTOL, atol=ATOL, equal_nan=True))
