"""Whether a candidate shows the same bug: the same signature, never just a failure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from fuzzing.cases import TestCase
from fuzzing.execute.evaluator import Evaluator
from fuzzing.outcomes import Outcome, Verdict
from fuzzing.reduce.engine import CLEAN, OTHER, SAME
from fuzzing.triage.signature import compute_signature

T = TypeVar("T")


def symptom_of(outcome: Outcome) -> dict[str, Any]:
    """What must stay as it is while a case shrinks: the signature, but for the operators in the case.

    Those come and go while a graph is cut; phase, verdict, exception, complaint and frames do not.
    """
    fields = compute_signature(outcome, operator="").fields
    return {name: value for name, value in fields.items() if name != "operator"}


def has_symptom(outcome: Outcome, wanted: dict[str, Any]) -> bool:
    """Whether an outcome has the symptom that is wanted.

    Of a case with several wrong outputs, one that is wrong in one of those ways is enough: what a graph shows
    may have two causes, and only one of them is left in the end.
    """
    found = symptom_of(outcome)
    if outcome.verdict is Verdict.WRONG_RESULT and found["complaint"]:
        difference_kinds = set(found["complaint"].split(", "))
        if difference_kinds <= set(wanted["complaint"].split(", ")):
            found["complaint"] = wanted["complaint"]
    return outcome.verdict.is_failure and found == wanted


class SymptomClassifier(Generic[T]):
    """A judge: runs candidates on a bench and compares what they show with what was shown first.

    wanted   the symptom to be kept
    case     makes a candidate a case
    passing  where the case one began with passes: what shows the symptom and does not pass there too shows a
             bug that was there before, and is as good as clean
    valid    whether a candidate is a legal program; one that is not is clean, and is not run
    """

    def __init__(
        self,
        evaluator: Evaluator,
        wanted: dict[str, Any],
        case: Callable[[T], TestCase],
        passing: Evaluator | None = None,
        valid: Callable[[T], bool] = lambda _candidate: True,
    ) -> None:
        self._valid = valid
        self._evaluator = evaluator
        self._wanted = wanted
        self._case = case
        self._passing = passing

    def __call__(self, candidates: Sequence[T]) -> list[str]:
        """SAME, OTHER or CLEAN for each candidate; what is invalid or unsupported is clean."""
        cases = {
            place: self._case(candidate)
            for place, candidate in enumerate(candidates)
            if self._valid(candidate)
        }
        answers = [CLEAN] * len(candidates)
        for place, outcome in zip(cases, self._evaluator.evaluate(list(cases.values())), strict=True):
            answers[place] = self._answer(outcome)
        same = [place for place, answer in enumerate(answers) if answer == SAME]
        if self._passing is not None and same:
            there = self._passing.evaluate([cases[place] for place in same])
            for place, outcome in zip(same, there, strict=True):
                if outcome.verdict is not Verdict.PASS:
                    answers[place] = CLEAN
        return answers

    def _answer(self, outcome: Outcome) -> str:
        if not outcome.verdict.is_failure:
            return CLEAN
        return SAME if has_symptom(outcome, self._wanted) else OTHER
