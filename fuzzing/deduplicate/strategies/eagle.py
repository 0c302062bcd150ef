"""EAGLE's de-duplication: by the rule and the API, whatever the symptom."""

from __future__ import annotations

from collections.abc import Sequence

from fuzzing.cases import EquivalentPair
from fuzzing.deduplicate.strategies.base import Failure, register_strategy
from fuzzing.triage.traits import read_traits


@register_strategy("eagle")
def by_rule_and_api(failures: Sequence[Failure]) -> list[str]:
    """What made the case (a rule of equivalence, or any other source), and what it calls."""
    return [repr(_rule_and_api(failure)) for failure in failures]


def _rule_and_api(failure: Failure) -> tuple[str, tuple[str, ...]]:
    case = failure.case
    rule = case.program.rule if isinstance(case.program, EquivalentPair) else case.provenance.source
    return rule, read_traits(case).operators
