"""Reduces pairs: the call that a rule rewrote is reduced, and both sides are made from it anew."""

from __future__ import annotations

from dataclasses import dataclass, fields

from fuzzing.cases import EquivalentPair, TestCase
from fuzzing.equivalence.pairs import pair_of, subject_of
from fuzzing.errors import InternalError
from fuzzing.execute.evaluator import Evaluator
from fuzzing.outcomes import Outcome
from fuzzing.reduce import calls
from fuzzing.reduce.formats import ProgramFormat, register_format


@dataclass(frozen=True)
class RuledSubject(TestCase):
    """The case of a call, and the rule that makes a pair of it."""

    rule: str = ""


def _load(case: TestCase, _evaluator: Evaluator, _outcome: Outcome) -> TestCase:
    assert isinstance(case.program, EquivalentPair)
    subject = subject_of(case)
    given = {one.name: getattr(subject, one.name) for one in fields(TestCase)}
    return RuledSubject(**given, rule=case.program.rule)


def _pair(subject: TestCase) -> TestCase | None:
    assert isinstance(subject, RuledSubject)
    given = {one.name: getattr(subject, one.name) for one in fields(TestCase)}
    return pair_of(TestCase(**given), subject.rule)


def _case(subject: TestCase) -> TestCase:
    if (made := _pair(subject)) is None:
        raise InternalError("a rule does not apply to a candidate that was valid")
    return made


register_format(
    ProgramFormat(
        EquivalentPair.kind,
        load=_load,
        case=_case,
        spec=calls.SPEC,
        words=("parameters", "inputs", "dimensions", "elements"),
        valid=lambda subject: _pair(subject) is not None,
    )
)
