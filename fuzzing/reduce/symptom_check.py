"""Whether a candidate has the same bug: its symptom must be equal, not only its verdict."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from fuzzing.cases import TestCase
from fuzzing.cases.plain_types import plainest_type
from fuzzing.execute.evaluator import Evaluator, Outputs
from fuzzing.outcomes import Outcome, Verdict
from fuzzing.reduce.engine import CLEAN, OTHER, SAME
from fuzzing.triage.signature import compute_signature, difference_kinds

T = TypeVar("T")

#: An element type in the complaint about an output of a wrong one.
_TYPE = re.compile(r"\w+(?= instead of)|(?<=instead of )\w+")


def symptom_of(outcome: Outcome) -> dict[str, Any]:
    """The fields of the signature that a reduction keeps: all but the operator."""
    fields = compute_signature(outcome, operator="").fields
    return {name: value for name, value in fields.items() if name != "operator"}


def has_symptom(outcome: Outcome, wanted: dict[str, Any]) -> bool:
    """Whether an outcome has the wanted symptom.

    If several outputs are wrong, one equal kind of difference suffices: a graph may have two causes, and a
    reduction keeps one of them. Of an output of a wrong type kinds of types are compared, since plainer types
    are tried in the place of both.
    """
    found = symptom_of(outcome)
    if outcome.verdict is Verdict.WRONG_RESULT and found["complaint"]:
        kinds, wanted_kinds = (_difference_kinds(each["complaint"]) for each in (found, wanted))
        if kinds <= wanted_kinds:
            found["complaint"] = wanted["complaint"]
    return outcome.verdict.is_failure and found == wanted


def _difference_kinds(complaint: str) -> set[str]:
    return difference_kinds(_TYPE.sub(lambda found: plainest_type(found[0]), complaint))


class SymptomClassifier(Generic[T]):
    """Runs candidates and compares their symptoms with the wanted one.

    wanted   the symptom to keep
    case     converts a candidate to a case
    passing  the evaluator of a toolchain on which the first case passes; a candidate that does not pass there
             has an older bug and counts as clean
    valid    whether a candidate is a legal program; illegal ones count as clean, and are not run
    declares  whether it declares the outputs that the library computes; others that fail count as clean
    """

    def __init__(
        self,
        evaluator: Evaluator,
        wanted: dict[str, Any],
        case: Callable[[T], TestCase],
        passing: Evaluator | None = None,
        valid: Callable[[T], bool] = lambda _candidate: True,
        declares: Callable[[T, Outputs], bool] | None = None,
    ) -> None:
        self._valid = valid
        self._declares = declares
        self._evaluator = evaluator
        self._wanted = wanted
        self._case = case
        self._passing = passing

    def __call__(self, candidates: Sequence[T]) -> list[str]:
        """SAME, OTHER or CLEAN for each candidate; invalid and unsupported ones are clean."""
        cases = {
            place: self._case(candidate)
            for place, candidate in enumerate(candidates)
            if self._valid(candidate)
        }
        answers = [CLEAN] * len(candidates)
        for place, outcome in zip(cases, self._evaluator.evaluate(list(cases.values())), strict=True):
            answers[place] = self._answer(outcome)
            if answers[place] != CLEAN and not self._is_declared(candidates[place], cases[place]):
                answers[place] = CLEAN
        same = [place for place, answer in enumerate(answers) if answer == SAME]
        if self._passing is not None and same:
            there = self._passing.evaluate([cases[place] for place in same])
            for place, outcome in zip(same, there, strict=True):
                if outcome.verdict is not Verdict.PASS:
                    answers[place] = CLEAN
        return answers

    def _is_declared(self, candidate: T, case: TestCase) -> bool:
        """Whether the case declares its outputs as the library computes them."""
        if self._declares is None:
            return True
        outputs = self._evaluator.reference(case)
        return outputs is None or self._declares(candidate, outputs)

    def _answer(self, outcome: Outcome) -> str:
        if not outcome.verdict.is_failure:
            return CLEAN
        return SAME if has_symptom(outcome, self._wanted) else OTHER
