"""Runs the localization methods on a failing case."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from fuzzing.cases import TestCase
from fuzzing.execute.shard import Shard
from fuzzing.localize.facts import Fact
from fuzzing.localize.failing_case import BudgetExhaustedError, FailingCase
from fuzzing.localize.methods.base import Method, get_methods
from fuzzing.outcomes import Outcome
from fuzzing.reduce.engine import Budget

BUDGET = Budget(runs=500, seconds=300.0)


@dataclass(frozen=True)
class Localization:
    """What is known of where a case fails.

    outcome  what the case does
    facts    of the methods that apply to the backend and the case
    runs     how often the compiler was run in all
    """

    outcome: Outcome
    facts: tuple[Fact, ...]
    runs: int


def localize(
    case: TestCase,
    shard: Shard,
    *,
    budget: Budget = BUDGET,
    methods: Collection[str] = (),
    progress: Callable[[Fact], None] | None = None,
) -> Localization:
    """Puts a case that fails under the settings of `shard` through the methods named; all by default.

    Raises UsageError if the case does not fail, UnknownNameError for an unknown method.
    """
    chosen = get_methods(methods)
    facts = []
    with FailingCase(case, shard, budget) as failure:
        for fact in _facts(failure, chosen):
            facts.append(fact)
            if progress is not None:
                progress(fact)
        return Localization(failure.outcome, tuple(facts), failure.runs)


def _facts(failure: FailingCase, methods: dict[str, Method]) -> Iterator[Fact]:
    for name, method in methods.items():
        before = failure.runs
        try:
            fact = method(failure)
        except BudgetExhaustedError:
            fact = Fact(name, (), "the budget was spent before this was found", failure.runs - before)
        if fact is not None:
            failure.facts[name] = fact
            yield fact
