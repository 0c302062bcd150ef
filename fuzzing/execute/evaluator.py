"""The evaluator: runs and decides a few cases at a time, in workers that stay.

A shard runs thousands of cases and ends; a reducer needs a few at a time, hundreds of times. Its cases are in
no corpus, so references go to a temporary folder.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from fuzzing import backends
from fuzzing.backends.base import NOTE_PREFIX
from fuzzing.cases import TestCase
from fuzzing.cases.values import Value
from fuzzing.execute.computed_precision import ComputedPrecision
from fuzzing.execute.library_check import LibraryCheck
from fuzzing.execute.model_check import without_newer_operators
from fuzzing.execute.operator_check import OperatorCheck
from fuzzing.execute.recheck import Rechecker, RecheckRequest
from fuzzing.execute.reference_outputs import ReferenceOutputs
from fuzzing.execute.reference_runner import ReferenceRunners
from fuzzing.execute.shard import Shard
from fuzzing.execute.supervisor import Supervisor
from fuzzing.execute.worker_command import WorkerCommand
from fuzzing.execution import Execution
from fuzzing.file_trees import discard_tree
from fuzzing.oracles import decide_outcome, format_configuration
from fuzzing.oracles.float64_check import needs_recheck
from fuzzing.oracles.reference import needs_reference
from fuzzing.outcomes import Evidence, Outcome, Phase, Verdict

Outputs = tuple[tuple[str, Value], ...]
Notes = tuple[tuple[str, str], ...]


class Evaluator:
    """Runs and decides cases like a shard of these settings; `shard.corpus` and `shard.cases` are unused.

    A context manager: its workers end with it. With `shard.fresh` each case has an interpreter of its own;
    with `shard.forked` too, a process forked by one that ran no case.

    share_with     an evaluator of the same toolchain, open for as long, whose runs of the library are shared
    kinds          of the programs to come, if known: their libraries are imported before workers are forked
    configuration  options and profile of its outcomes that are not the default
    """

    def __init__(
        self, shard: Shard, share_with: Evaluator | None = None, kinds: Collection[str] = ()
    ) -> None:
        self._shard = shard
        self._backend = backends.get(shard.backend)
        options = self._backend.resolve_options(shard.options)
        self._precision = ComputedPrecision(self._backend, shard.device, options)
        self._reference_options = self._backend.reference_options(options)
        self.configuration = format_configuration(
            self._backend.non_default_options(shard.options), shard.profile
        )
        command = WorkerCommand(
            shard.python,
            shard.backend,
            shard.device,
            dict(options),
            shard.limits,
            kinds=tuple(sorted(kinds)),
        )
        self._supervisor: Supervisor[int] = Supervisor(
            command,
            workers=shard.workers,
            fresh=shard.fresh,
            interpreter=(lambda _: 1) if shard.forked else None,
        )
        self._own = ExitStack()
        self._own.callback(self._supervisor.close)
        self._reference_runners: ReferenceRunners = (
            self._open_runners(shard) if share_with is None else share_with._reference_runners
        )
        self._references = ReferenceOutputs(self._reference_runners)
        self._rechecker = Rechecker(self._reference_runners)
        if share_with is None:
            self._library_check = LibraryCheck(self._backend, command, self._reference_runners, self._judge)
            self._own.callback(self._library_check.close)
            self._operator_check = OperatorCheck(command, self._reference_runners)
            self._own.callback(self._operator_check.close)
        else:
            self._library_check = share_with._library_check
            self._operator_check = share_with._operator_check

    def __enter__(self) -> Evaluator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._own.close()

    def _open_runners(self, shard: Shard) -> ReferenceRunners:
        """Reference runners with a temporary folder."""
        folder = Path(tempfile.mkdtemp(prefix="assay-evaluator-"))
        self._own.callback(discard_tree, folder)
        made = ReferenceRunners(
            folder, shard.python, shard.limits, self._reference_options, keep_workers=True
        )
        self._own.callback(made.close)
        return made

    def renew(self) -> None:
        """Ends the compiler's workers: the next case runs in a process that ran none before."""
        self._supervisor.renew()

    def evaluate(self, cases: Sequence[TestCase]) -> list[Outcome]:
        """The outcome of each case, in order."""
        return [outcome for outcome, _ in self.instrumented(cases, None)]

    def instrumented(
        self, cases: Sequence[TestCase], instrumentation: Mapping[str, Any] | None
    ) -> list[tuple[Outcome, Notes]]:
        """The outcome and notes of each case.

        instrumentation  arguments of `fuzzing.backends.base.Instrumentation`; None for plain runs
        """
        found: dict[int, Outcome] = {}
        notes: dict[int, Notes] = {}
        runnable: dict[int, TestCase] = {}
        for place, (case, error) in enumerate(self._references.complete(cases)):
            if error:
                found[place] = self._invalid(cases[place], error)
            else:
                runnable[place] = case
        recheck_requests: dict[int, RecheckRequest] = {}
        for place, execution in self._supervisor.serve(runnable.items(), instrumentation):
            if instrumentation:
                logged_notes, log = split_notes(execution.log)
                notes[place] = execution.notes or logged_notes
                execution = replace(execution, log=log)  # noqa: PLW2901 - without the notes written there
            outcome = self._decide(runnable[place], execution)
            found[place] = outcome
            if needs_recheck(outcome, self._shard.profile):
                computed = needs_reference(cases[place])
                recheck_requests[place] = RecheckRequest.of(
                    runnable[place],
                    computed,
                    execution,
                    outcome,
                    self._precision.of(runnable[place].program),
                )
        found.update(
            zip(recheck_requests, self._rechecker.recheck(list(recheck_requests.values())), strict=True)
        )
        for place, case in runnable.items() if not instrumentation else ():
            outcome = self._library_check.without_library_failures(
                case, needs_reference(cases[place]), found[place]
            )
            computed_in = self._precision.of(case.program)
            found[place] = self._operator_check.without_amplified_errors(case, outcome, computed_in)
        newest = self._backend.newest_opset(self._supervisor.versions.get(self._backend.package, ""))
        return [
            (replace(without_newer_operators(case, found[place], newest), case=case.id), notes.get(place, ()))
            for place, case in enumerate(cases)
        ]

    def reference(self, case: TestCase) -> Outputs | None:
        """The library's outputs of a case without expected ones; None if the library fails."""
        [(completed, error)] = self._references.complete([case])
        return None if error else completed.expected

    def _decide(self, case: TestCase, execution: Execution) -> Outcome:
        shard = self._shard
        return decide_outcome(
            case,
            execution,
            self._backend,
            shard.toolchain,
            shard.device,
            shard.profile,
            configuration=self.configuration,
            computed_in=self._precision.of(case.program),
        )

    def _judge(self, case: TestCase, computed: bool, execution: Execution) -> Outcome:
        """The outcome of an execution, rechecked if it needs that."""
        outcome = self._decide(case, execution)
        if not needs_recheck(outcome, self._shard.profile):
            return outcome
        computed_in = self._precision.of(case.program)
        [rechecked] = self._rechecker.recheck(
            [RecheckRequest.of(case, computed, execution, outcome, computed_in)]
        )
        return rechecked

    def _invalid(self, case: TestCase, why: str) -> Outcome:
        return Outcome(
            case=case.id,
            backend=self._backend.name,
            toolchain=self._shard.toolchain,
            device=self._shard.device,
            verdict=Verdict.INVALID,
            phase=Phase.IMPORT,
            summary=why.splitlines()[0][:200],
            evidence=Evidence(message=why),
            configuration=self.configuration,
        )


def split_notes(log: str) -> tuple[Notes, str]:
    """The notes in the log of an instrumented process, and the rest of the log."""
    lines = log.splitlines(keepends=True)
    logged_notes = [
        line[len(NOTE_PREFIX) :].strip().partition(" ") for line in lines if line.startswith(NOTE_PREFIX)
    ]
    rest = "".join(line for line in lines if not line.startswith(NOTE_PREFIX))
    return tuple((what, name) for what, _, name in logged_notes), rest
