"""The reference: what a case's outputs ought to be, computed apart from any compiler under test.

Where the library ships the outputs with its test they are the reference. Otherwise the library that the
program belongs to computes them, as a backend of its own in a worker of its own.
"""

from __future__ import annotations

from dataclasses import replace

from fuzzing.cases import TestCase, Value
from fuzzing.errors import InternalError


def needs_reference(case: TestCase) -> bool:
    """Whether the reference must still be computed."""
    return not case.has_reference


def with_reference(case: TestCase, outputs: tuple[tuple[str, Value], ...]) -> TestCase:
    """The case with `outputs` as its reference. It is another case, with another id.

    Raises InternalError if the case has a reference already: what a library ships is never replaced.
    """
    if not needs_reference(case):
        raise InternalError(f"case {case.id} has its reference already")
    return replace(case, expected=outputs)
