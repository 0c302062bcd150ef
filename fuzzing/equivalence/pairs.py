"""Pairs: a rule applied to a subject gives a case."""

from __future__ import annotations

from dataclasses import replace

from fuzzing.cases import EquivalentPair, Input, KerasLayer, Provenance, TestCase, TorchCall, TorchProgram
from fuzzing.equivalence import rule as rules
from fuzzing.equivalence.layers import LayerSubject
from fuzzing.equivalence.subject import Subject
from fuzzing.errors import CaseFormatError, UsageError

#: Library → the source of its pairs.
SOURCES = {"torch": "eagle", "keras": "eagle-keras"}


def make_pair(rule: rules.Rule, subject: TestCase) -> TestCase | None:
    """The case of a rule's two programs for a subject; None if the rule does not apply to it."""
    if isinstance(subject.program, KerasLayer):
        sides = rule.rewrite(LayerSubject(subject))
    else:
        found = Subject(subject)
        sides = rule.rewrite(found) if found.writable else None
    if sides is None:
        return None
    program = EquivalentPair(TorchProgram(sides.left), TorchProgram(sides.right), rule.name, _text(subject))
    origin = subject.provenance
    test = f"{rule.name}/{origin.test}"
    provenance = Provenance(
        SOURCES[rule.library], test, origin.operator, origin.library, origin.version, origin.seed
    )
    return replace(subject, program=program, provenance=provenance, expected=None)


def subject_of(pair: TestCase) -> TestCase:
    """The case that a pair's rule rewrote. Raises UsageError if the pair does not hold it."""
    program = pair.program
    assert isinstance(program, EquivalentPair)
    if not program.subject:
        raise UsageError(f"the pair {pair.id} does not hold what its rule {program.rule} rewrote")
    kind = KerasLayer if rules.get(program.rule).library == "keras" else TorchCall
    return replace(pair, program=kind.from_bytes(program.subject.encode()))


def pair_of(subject: TestCase, rule: str) -> TestCase | None:
    """The inverse of `subject_of` for the rule of this name."""
    try:
        made = make_pair(rules.get(rule), replace(subject, inputs=_used_inputs(subject)))
    except CaseFormatError:
        return None
    return None if made is None else replace(made, provenance=subject.provenance)


def _text(subject: TestCase) -> str:
    return subject.program.to_bytes().decode()


def _used_inputs(subject: TestCase) -> tuple[tuple[str, Input], ...]:
    assert isinstance(subject.program, (TorchCall, KerasLayer))
    names = {tensor.name for tensor in subject.program.tensors}
    return tuple(item for item in subject.inputs if item[0] in names)
