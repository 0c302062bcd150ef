"""Verifies pairs of APIs: recorded calls of one run on both, first a few, then all if the pair survives."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from fuzzing.cases import Tensor, TestCase
from fuzzing.errors import InternalError
from fuzzing.execution import Execution
from fuzzing.generate.deeprel.api_inventory import Api
from fuzzing.generate.deeprel.call_mutation import Mutator
from fuzzing.generate.deeprel.call_transfer import Invocation, Transfer, transfer
from fuzzing.generate.deeprel.verification import Equivalence, Outcome, Outputs, compare_executions, is_bug

#: Calls run before it is looked whether the pair has failed, at first and later: most fail at the first call,
#: and what is sent ahead of a worker is run for nothing.
_STEPS = (1, 4)
_LATER_STEP = 16
#: After as many calls that end their process the pair is left alone: each costs a new one, or a whole limit.
_MAX_CRASHES = 3


class ExecutionHandler(Protocol):
    """Receives the execution of a case."""

    def handle(self, place: int, execution: Execution) -> list[CaseRequest]:
        """Receives the execution of its case `place`; returns the jobs that follow."""


#: Who wants a case run, as its how-manieth, and the case.
CaseRequest = tuple[tuple[ExecutionHandler, int], TestCase]


class SourceRuns:
    """The source API's own calls, each run once for all targets."""

    def __init__(self, api: Api, calls: Sequence[Invocation]) -> None:
        self.api = api
        self.calls = tuple(calls)
        self._executions: dict[int, Execution] = {}
        self._places: dict[tuple[object, ...], int] = {}

    def place(self, key: tuple[object, ...], case: TestCase) -> tuple[int, list[CaseRequest]]:
        """The index of a call's execution, and the job to run if it is new.

        key  distinguishes the call from the source's others
        """
        if key in self._places:
            return self._places[key], []
        self._places[key] = len(self._places)
        return self._places[key], [((self, self._places[key]), case)]

    def handle(self, place: int, execution: Execution) -> list[CaseRequest]:
        """Stores an execution."""
        self._executions[place] = execution
        return []

    def execution(self, place: int) -> Execution:
        """An execution that has ended: one worker ends its cases in the order it got them."""
        if place not in self._executions:
            raise InternalError(f"{self.api.name}: the target's call ended before the source's")
        return self._executions[place]


@dataclass(frozen=True)
class AcceptedCall:
    """A call of the target that the library accepts, and the digest of its outputs."""

    call: Invocation
    case: TestCase
    digest: str


@dataclass(frozen=True)
class LibraryBug:
    """A call at which the library crashed, or one of its own assertions failed."""

    api: str
    case: TestCase
    reason: str


@dataclass(frozen=True)
class Inconsistency:
    """A mutated call on which two APIs differ that agree on all recorded ones."""

    source: str
    target: str
    equivalence: Equivalence
    case: TestCase
    reason: str


@dataclass(frozen=True)
class _SentCall:
    """A call of the target that was sent.

    source       index of the source's run
    source_case  the source's call, if this pair was the first to request it
    """

    transfer: Transfer
    case: TestCase
    source: int
    source_case: TestCase | None
    mutated: bool


@dataclass
class ApiPair:
    """A source API, a target API, and their results so far.

    similarity  by which the target was chosen
    mutants     how many mutated calls are run once the pair holds, drawn from `seed` and the APIs' names
    outcomes    of the recorded calls, by the equivalence under which they were judged
    mutated     outcomes of the mutated calls
    accepted    the target's calls that returned
    bugs        crashes and failed assertions of the library
    """

    runs: SourceRuns
    target: Api
    similarity: float
    mutants: int = 0
    seed: int = 0
    outcomes: dict[Equivalence, Counter[Outcome]] = field(
        default_factory=lambda: {"value": Counter(), "status": Counter()}
    )
    mutated: Counter[Outcome] = field(default_factory=Counter)
    accepted: list[AcceptedCall] = field(default_factory=list)
    bugs: list[LibraryBug] = field(default_factory=list)
    inconsistencies: list[Inconsistency] = field(default_factory=list)
    tried: int = 0

    def __post_init__(self) -> None:
        self._transfers = self._transferable()
        self._sent: list[_SentCall] = []
        self._taken = 0
        self._crashes = 0
        self._steps = iter(_STEPS)
        self._mutating = False
        self._ended = False

    @property
    def source(self) -> Api:
        """The API whose calls were recorded."""
        return self.runs.api

    @property
    def ended(self) -> bool:
        """Whether all runs are complete."""
        return self._ended

    @property
    def equivalence(self) -> Equivalence | None:
        """The equivalence of the two: at least one success, and no counterexample; else None."""
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

    def begin(self) -> list[CaseRequest]:
        """The first jobs; none if no call of the source converts to the target."""
        return self._next_step()

    def _next_step(self) -> list[CaseRequest]:
        jobs: list[CaseRequest] = []
        wanted = next(self._steps, _LATER_STEP)
        for number, found in self._transfers:
            sent = self._send((number, found.dropped), found, seed=None)
            jobs += sent
            wanted -= bool(sent)
            if not wanted:
                break
        if not jobs and not self._mutating and self.equivalence:
            self._mutating = True
            jobs = self._mutants()
        self._ended = not jobs
        return jobs

    def _mutants(self) -> list[CaseRequest]:
        generator = random.Random(f"{self.seed}/{self.source.name}/{self.target.name}")  # noqa: S311
        mutator = Mutator(self.runs.calls, generator)
        jobs: list[CaseRequest] = []
        for number in range(self.mutants):
            found = transfer(mutator.mutate(), self.target)
            if found is not None:
                jobs += self._send(("mutant", self.target.name, number), found, seed=self.seed)
        return jobs

    def _send(self, key: tuple[object, ...], found: Transfer, seed: int | None) -> list[CaseRequest]:
        cases = found.cases(seed)
        if cases is None:
            return []
        place, needed = self.runs.place(key, cases[0])
        self._sent.append(_SentCall(found, cases[1], place, cases[0] if needed else None, seed is not None))
        return [*needed, ((self, len(self._sent) - 1), cases[1])]

    def handle(self, place: int, execution: Execution) -> list[CaseRequest]:
        """Judges a call of the target; returns the next jobs when all sent ones have ended."""
        sent = self._sent[place]
        source_execution = self.runs.execution(sent.source)
        if sent.mutated:
            self._judge_mutant(sent, source_execution, execution)
        else:
            self.tried += 1
            for equivalence in _BEST_FIRST:
                self.outcomes[equivalence][compare_executions(source_execution, execution, equivalence)] += 1
        if sent.source_case is not None and is_bug(source_execution):
            self.bugs.append(LibraryBug(self.source.name, sent.source_case, _failure_text(source_execution)))
        if is_bug(execution):
            self.bugs.append(LibraryBug(self.target.name, sent.case, _failure_text(execution)))
        elif execution.ending == "returned" and execution.outputs:
            self.accepted.append(AcceptedCall(sent.transfer.target, sent.case, digest(execution.outputs)))
        self._taken += 1
        self._crashes += not {source_execution.ending, execution.ending} <= {"returned", "raised"}
        if self._taken < len(self._sent):
            return []
        if self.outcomes["status"][Outcome.NOT_EQUIVALENT] or self._crashes >= _MAX_CRASHES:
            self._ended = True
            return []
        return self._next_step()

    def _judge_mutant(self, sent: _SentCall, source_execution: Execution, execution: Execution) -> None:
        equivalence = self.equivalence
        if equivalence is None:
            raise InternalError(
                f"{self.source.name} and {self.target.name} were mutated before they were verified"
            )
        judged = compare_executions(source_execution, execution, equivalence, mutated=True)
        self.mutated[judged] += 1
        if judged is Outcome.NOT_EQUIVALENT:
            reason = (
                f"{execution.error}: {execution.message[:300]}" if execution.error else "the values differ"
            )
            names = self.source.name, self.target.name
            self.inconsistencies.append(Inconsistency(*names, equivalence, sent.case, reason))


def _failure_text(execution: Execution) -> str:
    if execution.ending == "killed":
        return execution.signal or f"exit code {execution.exit_code}"
    return execution.message[:300]


#: The stronger claim first.
_BEST_FIRST: tuple[Equivalence, ...] = ("value", "status")


def digest(outputs: Outputs) -> str:
    """SHA-256 of a run's outputs: names, types, shapes and bytes."""
    total = hashlib.sha256()
    for name, value in outputs:
        head = (value.dtype, value.shape) if isinstance(value, Tensor) else repr(value)
        total.update(repr((name, head)).encode())
        total.update(value.data if isinstance(value, Tensor) else b"")
    return total.hexdigest()
