"""A failing case in a laboratory: run again and again, a little otherwise each time."""

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
from fuzzing.execute.bench import Bench, Seen
from fuzzing.execute.shard import Shard
from fuzzing.localise.facts import Fact
from fuzzing.outcomes import Outcome
from fuzzing.reduce.engine import Budget
from fuzzing.reduce.judging import shows, symptom
from fuzzing.triage.ladder import alike


class SpentError(Exception):
    """The budget is spent. Raised by whatever runs the compiler, caught where facts are gathered."""


class Failure:
    """A case that fails on one toolchain, and ways to run it.

    A context manager: the compiler is imported once for all runs but those that are fresh.

    case, shard  what fails, and how it is run
    backend      the compiler's adapter
    outcome      what the case does when nothing is left out
    seen         what it went through when watched (`fuzzing.backends.base.Watch.seen`)
    undisturbed  whether it failed alike when watched
    runs         how often the compiler was run
    facts        what is known by now, by way

    Raises UsageError if the case does not fail.
    """

    def __init__(self, case: TestCase, shard: Shard, budget: Budget) -> None:
        self.case, self.shard = case, shard
        self.backend = backends.get(shard.backend)
        self.runs = 0
        self.facts: dict[str, Fact] = {}
        self._budget = budget
        self._begin = time.monotonic()
        self._open = contextlib.ExitStack()
        self.bench = self._open.enter_context(Bench(replace(shard, workers=1, fresh=False)))
        self._fresh = self._open.enter_context(Bench(replace(shard, workers=1, fresh=True)))
        try:
            self.outcome = self.outcome_of(case)
            if not self.outcome.verdict.accuses:
                raise UsageError(_no_failure(self.outcome, case))
            watched, self.seen = self.watched()
            self.undisturbed = self.alike(watched)
        except BaseException:
            self._open.close()
            raise

    def __enter__(self) -> Failure:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.__exit__(kind, error, trace)

    def watched(self, without: Iterable[str] = ()) -> tuple[Outcome, Seen]:
        """What the case does without some parts of the compiler, and what it goes through."""
        return self._run(self.bench, self.case, {"without": list(without), "closely": True})

    def outcome_without(self, without: Iterable[str], *, fresh: bool = False) -> Outcome:
        """What the case does without some parts; in a process of its own, if `fresh`."""
        return self._run(self._fresh if fresh else self.bench, self.case, {"without": list(without)})[0]

    def outcome_until(self, stage: str, *, fresh: bool = False) -> Outcome:
        """What the case is worth after a stage of the compiler, by another way than the compiler's."""
        return self._run(self._fresh if fresh else self.bench, self.case, {"until": stage})[0]

    def outcome_on(self, options: Mapping[str, str]) -> Outcome:
        """What the case does with other options of the backend, in a process of its own."""
        given = {**self.shard.options, **options}
        with Bench(replace(self.shard, workers=1, fresh=True, options=given)) as bench:
            return self._run(bench, self.case, None)[0]

    def outcome_of(self, case: TestCase, *, fresh: bool = False) -> Outcome:
        """What another case does, with nothing left out."""
        return self._run(self._fresh if fresh else self.bench, case, None)[0]

    def alike(self, outcome: Outcome) -> bool:
        """Whether the same case, run otherwise, fails as it did at first."""
        return alike(outcome, self.outcome)

    def shown_by(self, outcome: Outcome) -> bool:
        """Whether another case shows the same bug."""
        return shows(outcome, symptom(self.outcome))

    def noted(self, what: str) -> tuple[str, ...]:
        """The names of one sort among what the case went through."""
        return names(self.seen, what)

    def _run(self, bench: Bench, case: TestCase, watch: Mapping[str, Any] | None) -> tuple[Outcome, Seen]:
        if self.runs >= self._budget.runs or time.monotonic() - self._begin > self._budget.seconds:
            raise SpentError
        self.runs += 1
        [answer] = bench.watched([case], watch)
        return answer


def names(seen: Seen, what: str) -> tuple[str, ...]:
    """The names of one sort among what was seen, in order."""
    return tuple(name for kind, name in seen if kind == what)


def _no_failure(outcome: Outcome, case: TestCase) -> str:
    return (
        f"case {case.id[:16]} does not fail on {outcome.backend}: {outcome.verdict.value} "
        f"({outcome.summary}); there is nothing to localise"
    )
