"""Two APIs put to the test: recorded calls of one are run on both, a few first, all if the pair survives."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from fuzzing.cases import Tensor, TestCase
from fuzzing.errors import InternalError
from fuzzing.execute.execution import Execution
from fuzzing.generate.deeprel.apis import Api
from fuzzing.generate.deeprel.transfer import Invocation, Transfer, transfer
from fuzzing.generate.deeprel.verification import Equivalence, Outcome, Outputs, is_bug, outcome

#: Calls run before it is looked whether the pair has already failed: most do at the first, and what is sent
#: ahead of a worker is run for nothing.
_STEPS = (1, 4, 16)


class Taker(Protocol):
    """Something that waits for the execution of a case."""

    def take(self, place: int, execution: Execution) -> list[Job]:
        """Takes the execution of its case `place`; the jobs that follow from it."""


#: Who wants a case run, as its how-manieth, and the case.
Job = tuple[tuple[Taker, int], TestCase]


class SourceRuns:
    """The source API's own calls, each run once for all targets that it is compared with."""

    def __init__(self, api: Api, calls: Sequence[Invocation]) -> None:
        self.api = api
        self.calls = tuple(calls)
        self._executions: dict[int, Execution] = {}
        self._places: dict[tuple[int, tuple[str, ...]], int] = {}

    def place(self, call: int, dropped: tuple[str, ...], case: TestCase) -> tuple[int, list[Job]]:
        """Where a call's execution will be found, and the job to get it if nobody has asked before."""
        key = call, dropped
        if key in self._places:
            return self._places[key], []
        self._places[key] = len(self._places)
        return self._places[key], [((self, self._places[key]), case)]

    def take(self, place: int, execution: Execution) -> list[Job]:
        """Keeps an execution."""
        self._executions[place] = execution
        return []

    def execution(self, place: int) -> Execution:
        """An execution that has ended: one worker ends its cases in the order in which it was given them."""
        if place not in self._executions:
            raise InternalError(f"{self.api.name}: the target's call ended before the source's")
        return self._executions[place]


@dataclass(frozen=True)
class Accepted:
    """A call of the target that the library accepts, and a digest of what it gave."""

    call: Invocation
    case: TestCase
    digest: str


@dataclass(frozen=True)
class Bug:
    """A call at which the library died, or one of its own assertions failed."""

    api: str
    case: TestCase
    how: str


@dataclass
class Pair:
    """A source API, a target API, and what running both has shown so far.

    similarity  by which the target was chosen
    outcomes    of the calls, by the equivalence under which they were judged
    accepted    the target's calls that returned
    bugs        what the library died of
    """

    runs: SourceRuns
    target: Api
    similarity: float
    outcomes: dict[Equivalence, Counter[Outcome]] = field(
        default_factory=lambda: {"value": Counter(), "status": Counter()}
    )
    accepted: list[Accepted] = field(default_factory=list)
    bugs: list[Bug] = field(default_factory=list)
    tried: int = 0

    def __post_init__(self) -> None:
        self._transfers = self._transferable()
        self._sent: list[tuple[Transfer, TestCase, int]] = []  # with the place of the source's run
        self._steps = iter(_STEPS)
        self._ended = False

    @property
    def source(self) -> Api:
        """The API whose calls were recorded."""
        return self.runs.api

    @property
    def ended(self) -> bool:
        """Whether everything has been run that will be."""
        return self._ended

    @property
    def equivalence(self) -> Equivalence | None:
        """How the two are equivalent: at least one success, and no call that shows otherwise."""
        for equivalence in _BEST_FIRST:
            seen = self.outcomes[equivalence]
            if seen[Outcome.SUCCESS] and not seen[Outcome.NOT_EQUIVALENT]:
                return equivalence
        return None

    def _transferable(self) -> Iterator[tuple[int, Transfer]]:
        for number, call in enumerate(self.runs.calls):
            found = transfer(call, self.target)
            if found is not None:
                yield number, found

    def begin(self) -> list[Job]:
        """The first jobs; none if no call of the source can be told as one of the target."""
        return self._next_step()

    def _next_step(self) -> list[Job]:
        count = next(self._steps, len(self.runs.calls))
        jobs: list[Job] = []
        begin = len(self._sent)
        for number, found in self._transfers:
            cases = found.cases()
            if cases is None:
                continue
            place, needed = self.runs.place(number, found.dropped, cases[0])
            jobs += [*needed, ((self, len(self._sent)), cases[1])]
            self._sent.append((found, cases[1], place))
            if len(self._sent) - begin >= count:
                break
        self._ended = not jobs
        return jobs

    def take(self, place: int, execution: Execution) -> list[Job]:
        """Judges a call of the target; the next jobs when all that were sent have ended."""
        found, case, source = self._sent[place]
        ours = self.runs.execution(source)
        self.tried += 1
        for equivalence in _BEST_FIRST:
            self.outcomes[equivalence][outcome(ours, execution, equivalence)] += 1
        if is_bug(execution):
            how = execution.signal or f"exit code {execution.exit_code}" if execution.ending == "killed" else ""
            self.bugs.append(Bug(self.target.name, case, how or execution.message[:300]))
        elif execution.ending == "returned" and execution.outputs:
            self.accepted.append(Accepted(found.target, case, digest(execution.outputs)))
        if self.tried < len(self._sent):
            return []
        if self.outcomes["status"][Outcome.NOT_EQUIVALENT]:
            self._ended = True
            return []
        return self._next_step()


#: The stronger claim first.
_BEST_FIRST: tuple[Equivalence, ...] = ("value", "status")


def digest(outputs: Outputs) -> str:
    """What tells two runs' outputs apart: SHA-256 of their names, types, shapes and bytes."""
    total = hashlib.sha256()
    for name, value in outputs:
        head = (value.dtype, value.shape) if isinstance(value, Tensor) else repr(value)
        total.update(repr((name, head)).encode())
        total.update(value.data if isinstance(value, Tensor) else b"")
    return total.hexdigest()
