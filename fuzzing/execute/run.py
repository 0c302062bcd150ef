"""One execution of a shard: cases in, outcomes out."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from fuzzing import backends
from fuzzing.cases import Corpus, TestCase
from fuzzing.errors import CaseFormatError, UsageError
from fuzzing.execute.appeals import Appeal, Appeals
from fuzzing.execute.execution import Execution
from fuzzing.execute.library import Libraries
from fuzzing.execute.prepared import Prepared
from fuzzing.execute.process import Command
from fuzzing.execute.references import References
from fuzzing.execute.supervisor import Supervisor
from fuzzing.oracles import configuration, judge
from fuzzing.oracles.profiles import profile_named
from fuzzing.oracles.referee import appealable
from fuzzing.oracles.reference import reference_needed
from fuzzing.outcomes import Evidence, Outcome, Phase, Verdict
from fuzzing.triage.ladder import climb

if TYPE_CHECKING:
    from fuzzing.execute.shard import Shard

Key = tuple[str, int]  # case id, repeat
#: Cases looked up at a time, which is what is held of a corpus of any size. Each time waits for the library,
#: for their references: the first outcomes must not wait long, later ones may as long as has passed.
_CHUNK, _LARGEST_CHUNK = 64, 1024
#: Appeals heard at once, by up to four workers of the library.
_BENCH = 64
_BENCH_BYTES = 64 << 20


class Run:
    """One execution of a shard. Raises UsageError for a shard that nothing can execute."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self._corpus = Corpus(shard.corpus)
        self._prepared = Prepared(self._corpus)
        self._backend = backends.get(shard.backend)
        if shard.device not in self._backend.devices:
            allowed = ", ".join(self._backend.devices)
            raise UsageError(f"{shard.backend} has no device {shard.device!r}; it has {allowed}")
        profile_named(shard.profile)
        self._options = self._backend.settle(shard.options)
        self._configuration = configuration(self._backend.unusual(shard.options), shard.profile)
        self.supervisor: Supervisor[Key] = Supervisor(
            self._command(self._options), workers=shard.workers, fresh=shard.fresh
        )
        self._libraries = Libraries(self._corpus.root, shard.python, shard.limits, lasting=True)
        self.references = References(self._libraries)
        self._appeals = Appeals(self._libraries)
        self._running: dict[Key, tuple[TestCase, bool]] = {}
        self._set_aside: list[Outcome] = []
        self._bench: list[tuple[Key, Appeal]] = []
        self._deadline = float("inf")
        self.stopped = ""
        self.phases: Counter[str] = Counter()

    def _command(self, options: dict[str, str]) -> Command:
        shard = self._shard
        return Command(shard.python, shard.backend, shard.device, dict(options), shard.limits)

    def outcomes(self) -> Iterator[tuple[int, Outcome]]:
        """(repeat, outcome) of each run, as they end; those that are appealed, when they are heard."""
        if self._shard.budget_s is not None:
            self._deadline = time.monotonic() + self._shard.budget_s
        with contextlib.closing(self._libraries):
            yield from self._settle()

    def _settle(self) -> Iterator[tuple[int, Outcome]]:
        for key, execution in self.supervisor.run(self._draw()):
            yield from self._take_set_aside()
            self.phases.update(execution.durations)
            case, computed = self._running.pop(key)
            outcome = self._judge(key[0], case, execution)
            if appealable(outcome, self._shard.profile):
                self._bench.append((key, Appeal(case, computed, execution.outputs, outcome)))
                if len(self._bench) >= _BENCH or self._bench_bytes() > _BENCH_BYTES:
                    yield from self._hear()
            else:
                yield key[1], self._settled(key, case, computed, outcome)
        yield from self._hear()
        yield from self._take_set_aside()

    def _judge(self, case_id: str, case: TestCase, execution: Execution) -> Outcome:
        """Under the id that was asked for: a case that got its reference here has another."""
        shard = self._shard
        return judge(
            case,
            execution,
            self._backend,
            shard.toolchain,
            shard.device,
            shard.profile,
            configuration=self._configuration,
            case_id=case_id,
        )

    def _settled(self, key: Key, case: TestCase, computed: bool, outcome: Outcome) -> Outcome:
        """The last word, with the component blamed."""
        if self._shard.ablate and key[1] == 0 and outcome.verdict.accuses:
            blame = climb(
                case, lambda options: self._rung(key[0], case, computed, options), self._backend, outcome
            )
            evidence = replace(outcome.evidence, rungs=blame.rungs, component=blame.component)
            outcome = replace(outcome, evidence=evidence)
        return outcome

    # -- appeals and rungs -------------------------------------------------------------------------

    def _bench_bytes(self) -> int:
        return sum(_size(appeal) for _, appeal in self._bench)

    def _hear(self) -> Iterator[tuple[int, Outcome]]:
        bench, self._bench = self._bench, []
        if bench:
            heard = list(self._appeals.hear([appeal for _, appeal in bench]))
            for (key, appeal), outcome in zip(bench, heard, strict=True):
                yield key[1], self._settled(key, appeal.case, appeal.computed, outcome)

    def _rung(self, case_id: str, case: TestCase, computed: bool, options: dict[str, str]) -> Outcome:
        """The case with other options, in a process of its own."""
        command = self._command(self._backend.settle(self._options | options))
        [(_, execution)] = Supervisor[None](command, fresh=True).run([(None, case)])
        outcome = self._judge(case_id, case, execution)
        if not appealable(outcome, self._shard.profile):
            return outcome
        [heard] = self._appeals.hear([Appeal(case, computed, execution.outputs, outcome)])
        return heard

    # -- the cases ---------------------------------------------------------------------------------

    def _draw(self) -> Iterator[tuple[Key, TestCase]]:
        """The cases with their references; those that cannot be run are set aside."""
        for case_id, case, computed in self._completed():
            for repeat in range(self._shard.repeats):
                if time.monotonic() > self._deadline:
                    self.stopped = "budget"
                    return
                self._running[case_id, repeat] = case, computed
                yield (case_id, repeat), case

    def _completed(self) -> Iterator[tuple[str, TestCase, bool]]:
        """Each case that can be run, with its reference, and whether that was computed."""
        ids, size = iter(self._shard.cases), _CHUNK
        while chunk := list(islice(ids, size)):
            found = [(case_id, case) for case_id in chunk if (case := self._found(case_id)) is not None]
            begin, waited = time.monotonic(), 0.0
            completed = self.references.complete([case for _, case in found])
            for (case_id, bare), (case, error) in zip(found, completed, strict=True):
                waited = waited or time.monotonic() - begin  # the first one waits for all
                if error:
                    self._put_aside(case_id, Verdict.INVALID, error)
                else:
                    yield case_id, case, reference_needed(bare)
            size = self._next_chunk(size, waited)

    def _next_chunk(self, size: int, seconds: float) -> int:
        """Twice as many cases; a quarter if their references would take half of the time that is left."""
        left = self._deadline - time.monotonic()
        return min(2 * size, _LARGEST_CHUNK) if 4 * seconds < left else max(size // 4, _CHUNK)

    def _found(self, case_id: str) -> TestCase | None:
        """The case, unless its files are spoiled or the backend does not take its kind of program.

        Raises UsageError for one that was never there: that is the shard's mistake, not the case's.
        """
        try:
            case = self._prepared.get(case_id)
        except CaseFormatError as error:
            if not self._corpus.folder(case_id).exists():
                raise UsageError(f"there is no case {case_id} in {self._corpus.root}") from None
            self._put_aside(case_id, Verdict.INVALID, str(error))
            return None
        if case.program.kind in self._backend.kinds:
            return case
        why = f"{self._backend.name} takes no {case.program.kind} programs"
        self._put_aside(case_id, Verdict.UNSUPPORTED, why)
        return None

    def _put_aside(self, case_id: str, verdict: Verdict, why: str) -> None:
        shard = self._shard
        outcome = Outcome(
            case=case_id,
            backend=self._backend.name,
            toolchain=shard.toolchain,
            device=shard.device,
            verdict=verdict,
            phase=Phase.IMPORT,
            summary=why.splitlines()[0][:200],
            evidence=Evidence(message=why),
            configuration=self._configuration,
        )
        self._set_aside.append(outcome)

    def _take_set_aside(self) -> Iterator[tuple[int, Outcome]]:
        while self._set_aside:
            outcome = self._set_aside.pop(0)
            yield from ((repeat, outcome) for repeat in range(self._shard.repeats))


def _size(appeal: Appeal) -> int:
    """Bytes of outputs held for an appeal, roughly."""
    values = [*dict(appeal.outputs).values(), *dict(appeal.case.expected or ()).values()]
    return sum(len(getattr(value, "data", b"")) for value in values)
