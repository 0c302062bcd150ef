"""The traits of a pair: its rule and what the rule rewrote, so that a bug is one for each rule and API."""

from __future__ import annotations

from fuzzing.cases import EquivalentModels, EquivalentPair, TestCase
from fuzzing.triage.traits import Traits, dtypes_of, register_traits


@register_traits(EquivalentPair.kind, EquivalentModels.kind)
def traits(case: TestCase) -> Traits:
    """The traits of a pair."""
    program = case.program
    assert isinstance(program, EquivalentPair)
    operator = case.provenance.operator
    if isinstance(program, EquivalentModels):  # whose operator names the rewrites
        dtypes = dtypes_of(given for _, given in case.inputs)
        return Traits(f"{operator} by {program.rule}", dtypes, operators=(operator,))
    return Traits(f"{operator} by {program.rule}", operators=(operator,))
