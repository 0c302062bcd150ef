"""Pairs: a rule applied to a subject gives a case."""

from __future__ import annotations

from dataclasses import replace

from fuzzing.cases import EquivalentPair, Input, Provenance, TestCase, TorchCall, TorchProgram
from fuzzing.equivalence import rule as rules
from fuzzing.equivalence.subject import Subject
from fuzzing.errors import CaseFormatError, UsageError

SOURCE = "eagle"


def make_pair(rule: rules.Rule, subject: TestCase) -> TestCase | None:
    """The case of a rule's two programs for a subject; None if the rule does not apply to it."""
    found = Subject(subject)
    if not found.writable or (sides := rule.rewrite(found)) is None:
        return None
    program = EquivalentPair(
        TorchProgram(sides.left), TorchProgram(sides.right), rule.name, subject.program.to_bytes().decode()
    )
    origin = subject.provenance
    test = f"{rule.name}/{origin.test}"
    provenance = Provenance(SOURCE, test, origin.operator, origin.library, origin.version, origin.seed)
    return replace(subject, program=program, provenance=provenance, expected=None)


def subject_of(pair: TestCase) -> TestCase:
    """The case that a pair's rule rewrote. Raises UsageError if the pair does not hold it."""
    program = pair.program
    assert isinstance(program, EquivalentPair)
    if not program.subject:
        raise UsageError(f"the pair {pair.id} does not hold what its rule {program.rule} rewrote")
    call = TorchCall.from_bytes(program.subject.encode())
    return replace(pair, program=call)


def pair_of(subject: TestCase, rule: str) -> TestCase | None:
    """The inverse of `subject_of` for the rule of this name."""
    try:
        made = make_pair(rules.get(rule), replace(subject, inputs=_used_inputs(subject)))
    except CaseFormatError:
        return None
    return None if made is None else replace(made, provenance=subject.provenance)


def _used_inputs(subject: TestCase) -> tuple[tuple[str, Input], ...]:
    assert isinstance(subject.program, TorchCall)
    names = {tensor.name for tensor in subject.program.tensors}
    return tuple(item for item in subject.inputs if item[0] in names)
