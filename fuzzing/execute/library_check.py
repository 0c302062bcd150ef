"""Checks, for a case that fails, whether its library fails alone before the compiler begins.

torch exports and decomposes a program, and Keras exports a model, before a compiler reads its first
instruction. What the library makes of the program runs on the library itself (`Backend.run_capture`) and is
judged as a compiler is. Where that fails too, no compiler is accused. Passing cases cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fuzzing.backends.base import MODEL, Backend
from fuzzing.cases import OnnxModel, TestCase
from fuzzing.cases.values import Tensor
from fuzzing.execute.forkserver import ForkServerPool
from fuzzing.execute.model_check import without_illegal_model
from fuzzing.execute.reference_runner import ReferenceRunners, describe_failure
from fuzzing.execute.supervisor import Supervisor
from fuzzing.execute.worker_command import WorkerCommand
from fuzzing.execution import Execution
from fuzzing.oracles.decision import decide_wrong_result, one_line, with_decision
from fuzzing.outcomes import Evidence, Outcome, Verdict

#: The outcome of an execution of a case, rechecked: the case, whether its reference was computed, the
#: execution.
Judge = Callable[[TestCase, bool, Execution], Outcome]
#: Differences that can make a compiler fail that reads the types and shapes that the library has noted.
_STATIC = frozenset(("missing", "type", "shape"))
#: The number of the interpreter that forks the checks' workers, as for first repeats and ablations.
_INTERPRETER = 1


class LibraryCheck:
    """Checks failing cases of one backend, in a worker of its own that starts with the first of them.

    command      of the backend's workers
    judge        decides as for the compiler
    forkservers  of workers with this command. Their interpreter 1 then forks a worker for each check and is
                 free between checks: no interpreter starts for the checks alone, but each worker is a new one
    """

    def __init__(
        self,
        backend: type[Backend],
        command: WorkerCommand,
        reference_runners: ReferenceRunners,
        judge: Judge,
        forkservers: ForkServerPool | None = None,
    ) -> None:
        self._backend = backend
        self._forkservers = forkservers
        self._command = replace(command, device=backend.devices[0])  # no GPU, which the cases' worker holds
        self._reference_runners = reference_runners
        self._judge = judge
        self._supervisor: Supervisor[None] | None = None
        self._known: dict[str, Outcome | None] = {}  # by case, as cases are repeated

    def close(self) -> None:
        """Ends the worker."""
        if self._supervisor is not None:
            self._supervisor.close()
            self._supervisor = None

    def without_library_failures(self, case: TestCase, computed: bool, outcome: Outcome) -> Outcome:
        """The outcome; `unsupported` if it is a failure that the library shows alone.

        A wrong result keeps the outputs in which the library is right. A crash is excused only where the
        library fails, or gives other types or shapes than it has itself.

        case      with its reference
        computed  whether the library computed that, rather than shipping it with its test
        """
        if outcome.verdict not in (Verdict.CRASH, Verdict.WRONG_RESULT):
            return outcome
        if case.program.kind not in self._backend.captured:
            return outcome
        if case.id not in self._known:
            self._known[case.id] = self._run(case, computed, outcome)
        alone = self._known[case.id]
        if alone is None or not alone.verdict.is_failure:
            return outcome
        if alone.verdict is not Verdict.WRONG_RESULT:
            return _excused(outcome, alone.summary)
        mismatches = alone.evidence.mismatches
        if outcome.verdict is Verdict.CRASH:
            static = any(item.kind in _STATIC for item in mismatches)
            return _excused(outcome, alone.summary) if static else outcome
        off = {item.output for item in mismatches}
        rest = tuple(item for item in outcome.evidence.mismatches if item.output not in off)
        return with_decision(outcome, decide_wrong_result(rest)) if rest else _excused(outcome, alone.summary)

    def _run(self, case: TestCase, computed: bool, failed: Outcome) -> Outcome | None:
        """The outcome of the library alone, for a compiler that `failed`; None if it cannot be told."""
        if self._supervisor is None:
            self._supervisor = Supervisor(
                self._command, interpreter=lambda _: _INTERPRETER, forkservers=self._forkservers
            )
        [(_, execution)] = self._supervisor.serve([(None, case)], {"library": True})
        if self._forkservers is not None:
            self._supervisor.renew(only_forked=True)
        if execution.exhausted:
            return None
        if [name for name, _ in execution.outputs] == [MODEL]:
            return self._run_model(case, computed, execution, failed)
        outcome = self._judge(case, computed, execution)
        return replace(outcome, summary=_describe(outcome, execution))

    def _run_model(
        self, case: TestCase, computed: bool, exported: Execution, failed: Outcome
    ) -> Outcome | None:
        """The outcome of an exported ONNX model on ONNX's evaluator, or of a check of the model."""
        [(_, model)] = exported.outputs
        assert isinstance(model, Tensor)
        exporting = replace(case, program=OnnxModel(model.data), expected=None)
        checked = without_illegal_model(exporting, True, failed)
        if checked.verdict is Verdict.INVALID:
            return replace(checked, verdict=Verdict.CRASH)
        [(_, execution)] = self._reference_runners.of(exporting).run([(None, exporting)])
        if execution.ending != "returned":
            return None  # the evaluator lacks operators, and the model may be right
        outputs = tuple((f"output {place}", value) for place, (_, value) in enumerate(execution.outputs))
        return self._judge(case, computed, replace(execution, outputs=outputs))


def _describe(outcome: Outcome, execution: Execution) -> str:
    if outcome.verdict is Verdict.WRONG_RESULT:
        return outcome.summary
    return describe_failure("the library", execution)


def _excused(outcome: Outcome, why: str) -> Outcome:
    summary = f"the library's own export or decomposition is wrong: {why}"
    return replace(
        outcome,
        verdict=Verdict.UNSUPPORTED,
        summary=one_line(summary),
        evidence=Evidence(message=outcome.evidence.message),
    )
