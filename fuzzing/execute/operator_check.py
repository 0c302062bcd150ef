"""Checks, for an ONNX model whose outputs are slightly wrong, whether any operator in it is.

Numbers that are right within the tolerance may become wrong ones: onnxruntime's Sigmoid of -12 is off by
4e-8, and 360 times that is outside the tolerance; TVM's Tanh of 1e-3 is off by a hundred roundings, and a
comparison with x shows it. No operator is wrong then. So the model runs once more with all its floats as
outputs, and the library computes each operator again from the compiler's own numbers. Where it agrees with
the compiler on all of them, the case passes. Where the wrong output does not show in that run, as the
compiler fuses operators, it stays wrong.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from fuzzing.cases import OnnxModel, TestCase, Value
from fuzzing.errors import UsageError
from fuzzing.execute.reference_runner import ReferenceRunners
from fuzzing.execute.supervisor import Supervisor
from fuzzing.execute.worker_command import WorkerCommand
from fuzzing.oracles.output_comparison import compare, match_outputs
from fuzzing.outcomes import Evidence, Mismatch, Outcome, Verdict

Outputs = tuple[tuple[str, Value], ...]

#: An estimate: what is off by more than a hundredth (`Mismatch.passes_at`) is taken for the error of an
#: operator, without another run. Of the differences that were amplified, none was off by a thousandth.
_SLIGHT = 1e-2
#: The same difference shows again if it is at least this part of the first one; other kernels may be chosen
#: for operators whose results are outputs.
_SAME = 0.5


class OperatorCheck:
    """Checks cases of one compiler, in a worker of its own that starts with the first of them.

    command      of the compiler's workers
    computed_in  see `fuzzing.backends.base.Backend`
    """

    def __init__(self, command: WorkerCommand, reference_runners: ReferenceRunners) -> None:
        self._command = command
        self._reference_runners = reference_runners
        self._supervisor: Supervisor[None] | None = None
        self._known: dict[str, bool] = {}  # by case, as cases are repeated

    def close(self) -> None:
        """Ends the worker."""
        if self._supervisor is not None:
            self._supervisor.close()
            self._supervisor = None

    def without_amplified_errors(
        self,
        case: TestCase,
        outcome: Outcome,
        computed_in: Mapping[str, str] = MappingProxyType({}),
    ) -> Outcome:
        """The outcome; a pass if its outputs are slightly wrong and each operator of the model is right by
        what it was given.

        case  with its reference
        """
        if not isinstance(case.program, OnnxModel) or not _may_be_amplified(outcome):
            return outcome
        if case.id not in self._known:
            self._known[case.id] = self._explains(case, outcome.evidence.mismatches, computed_in)
        if not self._known[case.id]:
            return outcome
        summary = (
            "each operator is within the tolerance for what it was given; later ones amplify the difference"
        )
        return replace(
            outcome,
            verdict=Verdict.PASS,
            summary=summary,
            evidence=Evidence(excused=outcome.evidence.mismatches),
        )

    def _explains(
        self, case: TestCase, mismatches: tuple[Mismatch, ...], computed_in: Mapping[str, str]
    ) -> bool:
        # Found by name, as backends are: the control plane imports this module, and never onnx.
        isolation = importlib.import_module("fuzzing.graph.operator_isolation")
        try:
            observed: TestCase | None = isolation.observe_numbers(case)
            expected = None if observed is None else self._compute(observed)
            if observed is None or expected is None:
                return False
            got = self._run(observed, expected)
            if got is None or not _shows(mismatches, self._differences(case, expected, got, computed_in)):
                return False
            wanted = self._compute(isolation.isolate_operators(case, dict(got)))
        except UsageError:  # a model that `Graph` cannot represent
            return False
        return wanted is not None and not self._differences(case, wanted, got, computed_in)

    @staticmethod
    def _differences(
        case: TestCase, wanted: Outputs, got: Outputs, computed_in: Mapping[str, str]
    ) -> tuple[Mismatch, ...]:
        return compare(
            wanted, got, tolerance=case.tolerance, comparison=case.comparison, computed_in=computed_in
        )

    def _compute(self, case: TestCase) -> Outputs | None:
        """The library's outputs; None if it fails."""
        [(_, execution)] = self._reference_runners.of(case).run([(None, case)])
        return execution.outputs if execution.ending == "returned" else None

    def _run(self, case: TestCase, expected: Outputs) -> Outputs | None:
        """The compiler's outputs, by the names of the expected ones; None if it fails or lacks one."""
        if self._supervisor is None:
            self._supervisor = Supervisor(self._command)
        [(_, execution)] = self._supervisor.serve([(None, case)])
        if execution.ending != "returned":
            return None
        values = match_outputs(expected, execution.outputs)
        pairs = [
            (name, value) for (name, _), value in zip(expected, values, strict=True) if value is not None
        ]
        return tuple(pairs) if len(pairs) == len(values) else None


def _may_be_amplified(outcome: Outcome) -> bool:
    """Whether an outcome is wrong in nothing but values that a small difference before them can explain:
    numbers near the right ones, and what is compared exactly, as a comparison is decided by any difference.
    """
    return outcome.verdict is Verdict.WRONG_RESULT and all(
        item.kind == "value"
        and (_is_exact(item) or (item.passes_at is not None and item.passes_at <= _SLIGHT))
        for item in outcome.evidence.mismatches
    )


def _is_exact(item: Mismatch) -> bool:
    return item.rtol == item.atol == 0


def _shows(first: tuple[Mismatch, ...], again: tuple[Mismatch, ...]) -> bool:
    """Whether the differences of the first run are there again."""
    found = {item.output: item.max_abs or 0.0 for item in again}
    return all(found.get(item.output, 0.0) >= _SAME * (item.max_abs or 0.0) > 0 for item in first)
