"""One execution of a shard: cases in, outcomes out."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from fuzzing import backends
from fuzzing.backends.base import SOURCE
from fuzzing.cases import Corpus, TestCase
from fuzzing.errors import CaseFormatError, UsageError
from fuzzing.execute.ablation import run_ablation
from fuzzing.execute.case_cache import CaseCache
from fuzzing.execute.computed_precision import ComputedPrecision
from fuzzing.execute.forkserver import ForkServerPool
from fuzzing.execute.library_check import LibraryCheck
from fuzzing.execute.model_check import without_illegal_model, without_newer_operators
from fuzzing.execute.operator_check import OperatorCheck
from fuzzing.execute.recheck import Rechecker, RecheckRequest
from fuzzing.execute.reference_outputs import ReferenceOutputs
from fuzzing.execute.reference_runner import ReferenceRunners
from fuzzing.execute.shard import Shard
from fuzzing.execute.supervisor import Supervisor
from fuzzing.execute.worker_command import WorkerCommand
from fuzzing.execute.wrong_rewrite import find_wrong_rewrite
from fuzzing.execution import Execution
from fuzzing.oracles import decide_outcome, format_configuration
from fuzzing.oracles.float64_check import needs_recheck
from fuzzing.oracles.reference import needs_reference
from fuzzing.oracles.tolerance_profiles import get_profile
from fuzzing.outcomes import Evidence, Outcome, Phase, Verdict

Key = tuple[str, int]  # case id, repeat
#: Cases read at a time, which bounds memory for a corpus of any size. Each chunk waits for its references:
#: the first outcomes must come soon, later chunks may take as long as has passed.
_CHUNK, _LARGEST_CHUNK = 64, 1024
#: Cases rechecked at once, by up to four workers of the library.
_RECHECK_BATCH = 64
#: Seconds after the end of the budget in which cases that were sent ahead may end. After a row of cases that
#: are refused at once, 512 are with a worker (`fuzzing.execute.prefetch`), which may take half a second each.
_GRACE_S = 2.0
_RECHECK_BATCH_BYTES = 64 << 20


class ShardRun:
    """One execution of a shard. Raises UsageError for a shard that cannot be executed.

    note_sources  whether to collect `sources`: the Python files of the toolchain that its cases import
    """

    def __init__(self, shard: Shard, *, note_sources: bool = False) -> None:
        self._shard = shard
        self._instrumentation = {"sources": True} if note_sources else None
        self.sources: set[str] = set()
        self._corpus = Corpus(shard.corpus)
        self._case_cache = CaseCache(self._corpus)
        self._backend = backends.get(shard.backend)
        if shard.device not in self._backend.devices:
            allowed = ", ".join(self._backend.devices)
            raise UsageError(f"{shard.backend} has no device {shard.device!r}; it has {allowed}")
        get_profile(shard.profile)
        self._options = self._backend.resolve_options(shard.options)
        self._precision = ComputedPrecision(self._backend, shard.device, self._options)
        self._configuration = format_configuration(
            self._backend.non_default_options(shard.options), shard.profile
        )
        self._forkservers = ForkServerPool()
        self.supervisor: Supervisor[Key] = Supervisor(
            self._command(self._options),
            workers=shard.workers,
            fresh=shard.fresh,
            interpreter=self._interpreter,
            forkservers=self._forkservers,
        )
        #: Of ablation, by options: importing a compiler takes longer than most cases.
        self._levels: dict[str, Supervisor[Key]] = {}
        self._reference_runners = ReferenceRunners(
            self._corpus.root,
            shard.python,
            shard.limits,
            self._backend.reference_options(self._options),
            keep_workers=True,
        )
        self.references = ReferenceOutputs(self._reference_runners)
        self._rechecker = Rechecker(self._reference_runners)
        self._library_check = LibraryCheck(
            self._backend,
            self._command(self._options),
            self._reference_runners,
            self._judge,
            self._forkservers if shard.fresh else None,
        )
        self._operator_check = OperatorCheck(self._command(self._options), self._reference_runners)
        self._running: dict[Key, tuple[TestCase, bool]] = {}
        self._unrunnable: list[Outcome] = []
        self._pending_rechecks: list[tuple[Key, TestCase, RecheckRequest]] = []
        self._deadline = float("inf")
        self.stopped = ""
        self.phases: Counter[str] = Counter()

    def _command(self, options: dict[str, str]) -> WorkerCommand:
        shard = self._shard
        return WorkerCommand(shard.python, shard.backend, shard.device, dict(options), shard.limits)

    def _interpreter(self, key: Key) -> int:
        """The n-th repeat of a case is forked by the n-th interpreter; the first may have one of its own."""
        case, repeat = key
        if repeat == 0 and (not self._shard.forked or case in self._shard.unforked):
            return 0
        return repeat + self._shard.forked

    def outcomes(self) -> Iterator[tuple[int, Outcome]]:
        """(repeat, outcome) of each run as it ends, or after its recheck."""
        if self._shard.budget_s is not None:
            self._deadline = time.monotonic() + self._shard.budget_s
        with contextlib.closing(self._reference_runners):
            try:
                yield from self._run_cases()
            finally:
                self._library_check.close()
                self._operator_check.close()
                while self._levels:
                    self._levels.popitem()[1].close()
                self._forkservers.close()

    def _run_cases(self) -> Iterator[tuple[int, Outcome]]:
        runs = self.supervisor.run(self._iterate_cases(), self._instrumentation)
        for key, execution in runs:
            yield from self._take_unrunnable()
            self.sources.update(path for kind, path in execution.notes if kind == SOURCE)
            self.phases.update(execution.durations)
            case, computed = self._running.pop(key)
            outcome = self._decide(key[0], case, execution)
            if needs_recheck(outcome, self._shard.profile):
                computed_in = self._precision.of(case.program)
                self._pending_rechecks.append(
                    (key, case, RecheckRequest.of(case, computed, execution, outcome, computed_in))
                )
                if (
                    len(self._pending_rechecks) >= _RECHECK_BATCH
                    or self._pending_bytes() > _RECHECK_BATCH_BYTES
                ):
                    yield from self._recheck_pending()
            else:
                yield key[1], self._add_ablation(key, case, computed, outcome)
            if self._running and time.monotonic() > self._deadline + _GRACE_S:
                self.stopped = "budget"
                break
        del runs  # ends the workers: cases that were sent ahead are left for another campaign
        yield from self._recheck_pending()
        yield from self._take_unrunnable()

    def _decide(self, case_id: str, case: TestCase, execution: Execution) -> Outcome:
        """The outcome under the requested id: a case that got its reference here has another."""
        shard = self._shard
        return decide_outcome(
            case,
            execution,
            self._backend,
            shard.toolchain,
            shard.device,
            shard.profile,
            configuration=self._configuration,
            case_id=case_id,
            computed_in=self._precision.of(case.program),
        )

    def _add_ablation(self, key: Key, case: TestCase, computed: bool, outcome: Outcome) -> Outcome:
        """The final outcome, with the failing component."""
        outcome = without_illegal_model(case, computed, outcome)
        newest = self._backend.newest_opset(self.supervisor.versions.get(self._backend.package, ""))
        outcome = without_newer_operators(case, outcome, newest)
        outcome = self._library_check.without_library_failures(case, computed, outcome)
        computed_in = self._precision.of(case.program)
        outcome = self._operator_check.without_amplified_errors(case, outcome, computed_in)
        if self._shard.ablate and key[1] == 0 and outcome.verdict.is_failure:
            ablation = run_ablation(
                case, lambda options: self._run_level(key[0], case, computed, options), self._backend, outcome
            )
            evidence = replace(
                outcome.evidence,
                ablation_runs=ablation.ablation_runs,
                component=ablation.component,
                rewrite=find_wrong_rewrite(case, outcome, self._run_pairs),
            )
            outcome = replace(outcome, evidence=evidence)
        return outcome

    # Rechecks and ablation

    def _pending_bytes(self) -> int:
        return sum(_size(recheck_request) for _, _, recheck_request in self._pending_rechecks)

    def _recheck_pending(self) -> Iterator[tuple[int, Outcome]]:
        pending, self._pending_rechecks = self._pending_rechecks, []
        if pending:
            rechecked = list(self._rechecker.recheck([recheck_request for _, _, recheck_request in pending]))
            for (key, case, recheck_request), outcome in zip(pending, rechecked, strict=True):
                yield key[1], self._add_ablation(key, case, recheck_request.computed, outcome)

    def _run_level(self, case_id: str, case: TestCase, computed: bool, options: dict[str, str]) -> Outcome:
        """Runs the case with other options, in a process of its own, forked where the compiler can be.

        By the interpreter of the second repeats, where the compiler can be loaded again or has those options.
        """
        level = " ".join(f"{name}={value}" for name, value in sorted(options.items()))
        if level not in self._levels:
            command = self._command(self._backend.resolve_options(self._options | options))
            alike = self._backend.reloadable or command.options == self._options
            self._levels[level] = Supervisor(
                command, fresh=True, interpreter=lambda _: 1, forkservers=self._forkservers if alike else None
            )
        [(_, execution)] = self._levels[level].serve([((case_id, 0), case)])
        return self._judge(case, computed, execution, case_id)

    def _judge(self, case: TestCase, computed: bool, execution: Execution, case_id: str = "") -> Outcome:
        """The outcome of an execution, rechecked at once if it needs that."""
        outcome = self._decide(case_id or case.id, case, execution)
        if not needs_recheck(outcome, self._shard.profile):
            return outcome
        [rechecked] = self._rechecker.recheck(
            [RecheckRequest.of(case, computed, execution, outcome, self._precision.of(case.program))]
        )
        return rechecked

    def _run_pairs(self, pairs: Sequence[TestCase]) -> list[Outcome]:
        """Runs pairs, in order, in a process beside that of the cases."""
        command = self._command(self._backend.resolve_options(self._options))
        supervisor = Supervisor[int](command, forkservers=self._forkservers)
        executions = dict(supervisor.run(list(enumerate(pairs))))
        requests = [
            RecheckRequest.of(
                pair,
                False,
                executions[place],
                self._decide(pair.id, pair, executions[place]),
                self._precision.of(pair.program),
            )
            for place, pair in enumerate(pairs)
        ]
        different = [one for one in requests if needs_recheck(one.outcome, self._shard.profile)]
        rechecked = {one.case: one for one in self._rechecker.recheck(different)}
        return [rechecked.get(one.outcome.case, one.outcome) for one in requests]

    # Cases

    def _iterate_cases(self) -> Iterator[tuple[Key, TestCase]]:
        """Runs that can be executed, with their references, until the budget is spent."""
        for case_id, case, computed in self._cases_with_references():
            for repeat in range(self._shard.repeats):
                if time.monotonic() > self._deadline:
                    self.stopped = "budget"
                    return
                self._running[case_id, repeat] = case, computed
                yield (case_id, repeat), case

    def _cases_with_references(self) -> Iterator[tuple[str, TestCase, bool]]:
        """Each case that can be run, with its reference, and whether that was computed."""
        ids, size = iter(self._shard.cases), _CHUNK
        while chunk := list(islice(ids, size)):
            found = [(case_id, case) for case_id in chunk if (case := self._read_case(case_id)) is not None]
            begin, waited = time.monotonic(), 0.0
            completed = self.references.complete([case for _, case in found])
            for (case_id, bare), (case, error) in zip(found, completed, strict=True):
                waited = waited or time.monotonic() - begin  # all of them wait for the first one
                if error:
                    self._record_unrunnable(case_id, Verdict.INVALID, error)
                else:
                    yield case_id, case, needs_reference(bare)
            size = self._next_chunk(size, waited)

    def _next_chunk(self, size: int, seconds: float) -> int:
        """Twice the chunk; a quarter if its references would take half of the remaining time."""
        left = self._deadline - time.monotonic()
        return min(2 * size, _LARGEST_CHUNK) if 4 * seconds < left else max(size // 4, _CHUNK)

    def _read_case(self, case_id: str) -> TestCase | None:
        """The case; None if its files are corrupt or the backend does not take its kind of program.

        Raises UsageError for an id that is not in the corpus, which is an error of the shard.
        """
        try:
            case = self._case_cache.get(case_id)
        except CaseFormatError as error:
            if not self._corpus.folder(case_id).exists():
                raise UsageError(f"there is no case {case_id} in {self._corpus.root}") from None
            self._record_unrunnable(case_id, Verdict.INVALID, str(error))
            return None
        if case.program.kind in self._backend.kinds:
            return case
        why = f"{self._backend.name} takes no {case.program.kind} programs"
        self._record_unrunnable(case_id, Verdict.UNSUPPORTED, why)
        return None

    def _record_unrunnable(self, case_id: str, verdict: Verdict, why: str) -> None:
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
        self._unrunnable.append(outcome)

    def _take_unrunnable(self) -> Iterator[tuple[int, Outcome]]:
        while self._unrunnable:
            outcome = self._unrunnable.pop(0)
            yield from ((repeat, outcome) for repeat in range(self._shard.repeats))


def _size(recheck_request: RecheckRequest) -> int:
    """Approximate bytes of outputs held for a recheck."""
    values = [*dict(recheck_request.outputs).values(), *dict(recheck_request.case.expected or ()).values()]
    return sum(len(getattr(value, "data", b"")) for value in values)
