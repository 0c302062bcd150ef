"""Formats: how each kind of program is taken apart, reduced and put together."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import fuzzing.reduce
from fuzzing.cases import TestCase
from fuzzing.errors import UsageError
from fuzzing.execute.evaluator import Evaluator, Outputs
from fuzzing.outcomes import Outcome
from fuzzing.reduce.engine import ReductionSpec

T = TypeVar("T")


@dataclass(frozen=True)
class ProgramFormat(Generic[T]):
    """How cases of one kind of program are reduced.

    kind   the program kind, as in `case.json`
    load   takes a case apart; the evaluator provides the library's values, the outcome is the failure
    case   puts it together
    spec   how it is reduced
    words  names of the first numbers of its size, for people
    valid  whether a candidate is a legal program; illegal ones are not run
    declares  whether a candidate declares the outputs that the library computes; None if none declares any
    split  (whole, index) → the parts before the index, and the rest with the library's values as inputs; None
           if it cannot be cut there
    parts  number of parts; with one part no root cause is searched
    decompose  the same computation as a case of several parts, of another kind; None if there is none
    """

    kind: str
    load: Callable[[TestCase, Evaluator, Outcome], T]
    case: Callable[[T], TestCase]
    spec: ReductionSpec[T]
    words: tuple[str, ...]
    valid: Callable[[T], bool] = lambda _candidate: True
    declares: Callable[[T, Outputs], bool] | None = None
    split: Callable[[T, int], tuple[T, T] | None] = lambda _whole, _at: None
    parts: Callable[[T], int] = lambda _whole: 1
    decompose: Callable[[TestCase, Evaluator], TestCase | None] = lambda _case, _evaluator: None


_FORMATS: dict[str, ProgramFormat[Any]] = {}


def register_format(program_format: ProgramFormat[Any]) -> None:
    """Registers a format under its kind."""
    _FORMATS[program_format.kind] = program_format


def get_format(kind: str) -> ProgramFormat[Any]:
    """The format of a kind of program; raises UsageError if it cannot be reduced."""
    for module in pkgutil.iter_modules(fuzzing.reduce.__path__):
        if module.name != "__main__":
            importlib.import_module(f"fuzzing.reduce.{module.name}")
    if kind not in _FORMATS:
        raise UsageError(f"programs of kind {kind} cannot be reduced; {', '.join(sorted(_FORMATS))} can")
    return _FORMATS[kind]
