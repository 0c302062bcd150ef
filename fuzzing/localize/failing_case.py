"""A failing case and its runs under varied conditions."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any

from fuzzing import backends
from fuzzing.cases import TestCase
from fuzzing.errors import UsageError
from fuzzing.execute.ablation import is_same_failure
from fuzzing.execute.evaluator import Evaluator, Notes
from fuzzing.execute.shard import Shard
from fuzzing.localize.facts import Fact
from fuzzing.outcomes import Outcome
from fuzzing.reduce.engine import Budget
from fuzzing.reduce.symptom_check import has_symptom, symptom_of


class BudgetExhaustedError(Exception):
    """The budget is spent. Raised by runs, caught in `fuzzing.localize.localization`."""


class FailingCase:
    """A case that fails on one toolchain, and methods that run it.

    A context manager: the compiler is imported once for all runs but those that are fresh.

    case, shard  what fails, and how it is run
    backend      the compiler's adapter
    outcome      what the case does when nothing is left out
    notes        what instrumentation recorded (`fuzzing.backends.base.Instrumentation.notes`)
    fails_when_watched  whether it failed in the same way while instrumented
    runs         how often the compiler was run
    facts        facts found so far, by method

    Raises UsageError if the case does not fail.
    """

    def __init__(self, case: TestCase, shard: Shard, budget: Budget) -> None:
        self.case, self.shard = case, shard
        self.backend = backends.get(shard.backend)
        self.runs = 0
        self.facts: dict[str, Fact] = {}
        self._budget = budget
        self._begin = time.monotonic()
        self._exit_stack = contextlib.ExitStack()
        self.evaluator = self._exit_stack.enter_context(Evaluator(replace(shard, workers=1, fresh=False)))
        self._fresh = self._exit_stack.enter_context(Evaluator(replace(shard, workers=1, fresh=True)))
        try:
            self.outcome = self.run_case(case)
            if not self.outcome.verdict.is_failure:
                raise UsageError(_not_failing_message(self.outcome, case))
            instrumented, self.notes = self.instrumented()
            self.fails_when_watched = self.is_same_failure(instrumented)
        except BaseException:
            self._exit_stack.close()
            raise

    def __enter__(self) -> FailingCase:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exit_stack.__exit__(kind, error, trace)

    def instrumented(self, disabled: Iterable[str] = ()) -> tuple[Outcome, Notes]:
        """What the case does without some parts of the compiler, and what it goes through."""
        return self._run(self.evaluator, self.case, {"disabled": list(disabled), "record": True})

    def run_without(self, disabled: Iterable[str], *, fresh: bool = False) -> Outcome:
        """What the case does without some parts; in a process of its own, if `fresh`."""
        return self._run(self._fresh if fresh else self.evaluator, self.case, {"disabled": list(disabled)})[0]

    def run_until_stage(self, stage: str, *, fresh: bool = False) -> Outcome:
        """What the case is worth after a stage of the compiler, by another way than the compiler's."""
        return self._run(self._fresh if fresh else self.evaluator, self.case, {"stop_after": stage})[0]

    def run_with_options(self, options: Mapping[str, str]) -> Outcome:
        """What the case does with other options of the backend, in a process of its own."""
        given = {**self.shard.options, **options}
        with Evaluator(replace(self.shard, workers=1, fresh=True, options=given)) as evaluator:
            return self._run(evaluator, self.case, None)[0]

    def run_case(self, case: TestCase, *, fresh: bool = False) -> Outcome:
        """What another case does, with nothing left out."""
        return self._run(self._fresh if fresh else self.evaluator, case, None)[0]

    def is_same_failure(self, outcome: Outcome) -> bool:
        """Whether the same case, run otherwise, fails as it did at first."""
        return is_same_failure(outcome, self.outcome)

    def shows_same_bug(self, outcome: Outcome) -> bool:
        """Whether another case shows the same bug."""
        return has_symptom(outcome, symptom_of(self.outcome))

    def noted_names(self, what: str) -> tuple[str, ...]:
        """The names of one sort among what the case went through."""
        return names(self.notes, what)

    def _run(
        self, evaluator: Evaluator, case: TestCase, instrumentation: Mapping[str, Any] | None
    ) -> tuple[Outcome, Notes]:
        if self.runs >= self._budget.runs or time.monotonic() - self._begin > self._budget.seconds:
            raise BudgetExhaustedError
        self.runs += 1
        [answer] = evaluator.instrumented([case], instrumentation)
        return answer


def names(notes: Notes, what: str) -> tuple[str, ...]:
    """The names of one sort among what was seen, in order."""
    return tuple(name for kind, name in notes if kind == what)


def _not_failing_message(outcome: Outcome, case: TestCase) -> str:
    return (
        f"case {case.id[:16]} does not fail on {outcome.backend}: {outcome.verdict.value} "
        f"({outcome.summary}); there is nothing to localize"
    )
