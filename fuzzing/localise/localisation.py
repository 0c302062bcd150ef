"""A failing case put through every way of telling where in the compiler it goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from fuzzing.cases import TestCase
from fuzzing.execute.shard import Shard
from fuzzing.localise.facts import Fact
from fuzzing.localise.failure import Failure, SpentError
from fuzzing.localise.ways.base import Way, ways_named
from fuzzing.outcomes import Outcome
from fuzzing.reduce.engine import Budget

BUDGET = Budget(runs=500, seconds=300.0)


@dataclass(frozen=True)
class Localisation:
    """What is known of where a case fails.

    outcome  what the case does
    facts    by way, those that apply to the backend and the case
    runs     how often the compiler was run in all
    """

    outcome: Outcome
    facts: tuple[Fact, ...]
    runs: int


def localise(
    case: TestCase,
    shard: Shard,
    *,
    budget: Budget = BUDGET,
    ways: Collection[str] = (),
    progress: Callable[[Fact], None] | None = None,
) -> Localisation:
    """Puts a case that fails under the settings of `shard` through the ways named; through all by default.

    Raises UsageError if the case does not fail, UnknownNameError for a way that there is not.
    """
    chosen = ways_named(ways)
    facts = []
    with Failure(case, shard, budget) as failure:
        for fact in _facts(failure, chosen):
            facts.append(fact)
            if progress is not None:
                progress(fact)
        return Localisation(failure.outcome, tuple(facts), failure.runs)


def _facts(failure: Failure, ways: dict[str, Way]) -> Iterator[Fact]:
    for name, way in ways.items():
        before = failure.runs
        try:
            fact = way(failure)
        except SpentError:
            fact = Fact(name, (), "the budget was spent before this could be told", failure.runs - before)
        if fact is not None:
            failure.facts[name] = fact
            yield fact
