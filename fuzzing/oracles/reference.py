"""The reference: a case's expected outputs, independent of any compiler under test.

It is the outputs that the library ships with its test, if any. Otherwise the program's own library computes
them, as a backend in a worker of its own.
"""

from __future__ import annotations

from dataclasses import replace

from fuzzing.cases import EquivalentPair, TestCase, Value
from fuzzing.errors import InternalError


def needs_reference(case: TestCase) -> bool:
    """Whether the reference must still be computed. A pair needs none."""
    return not case.has_reference and not isinstance(case.program, EquivalentPair)


def with_reference(case: TestCase, outputs: tuple[tuple[str, Value], ...]) -> TestCase:
    """The case with `outputs` as its reference. It is another case, with another id.

    Raises InternalError if the case has a reference: shipped outputs are never replaced.
    """
    if not needs_reference(case):
        raise InternalError(f"case {case.id} has its reference already")
    return replace(case, expected=outputs)
