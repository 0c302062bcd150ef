"""Reference outputs for cases without expected ones, computed by their own library and cached by content.

Computed once per case, not once per compiler. A case that fails in its own library is invalid.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from fuzzing.cases import TestCase
from fuzzing.cases.values import Value, value_from_json, value_to_json
from fuzzing.execute.reference_runner import (
    UNREADABLE_RECORD_ERRORS,
    ReferenceRunner,
    ReferenceRunners,
    describe_failure,
)
from fuzzing.execution import Execution
from fuzzing.oracles.reference import needs_reference, with_reference

#: Outputs, or the reason why there are none.
Record = tuple[tuple[tuple[str, Value], ...], str]


class ReferenceOutputs:
    """The references of a corpus's cases.

    cached  number of references that had been computed before
    """

    def __init__(self, reference_runners: ReferenceRunners) -> None:
        self._reference_runners = reference_runners
        self._transient: dict[str, Record] = {}  # depends on limits and machine more than on the case
        self.cached = 0

    def complete(self, cases: Iterable[TestCase]) -> Iterator[tuple[TestCase, str]]:
        """Each case with its expected outputs, and why it is invalid ("" if it is not), in order."""
        chunk = list(cases)
        needed = [case for case in chunk if needs_reference(case)]
        missing = [case for case in needed if self._load(case) is None]
        self.cached += len(needed) - len(missing)
        for runner, some in self._reference_runners.groups(missing):
            self._compute(runner, some)
        for case in chunk:
            if needs_reference(case):
                outputs, error = self._load(case) or ((), "its reference vanished")
                error = error or ("" if outputs else "it has no outputs")  # nothing to compute or compare
                yield (case, error) if error else (with_reference(case, outputs), "")
            else:
                yield case, ""

    def _compute(self, runner: ReferenceRunner, cases: list[TestCase]) -> None:
        name = runner.backend.name
        for case, execution in runner.run((case, case) for case in cases):
            if execution.exhausted:
                self._transient[case.id] = ((), describe_failure(name, execution))
            else:
                runner.store(case, _record(name, execution))

    def _load(self, case: TestCase) -> Record | None:
        if case.id in self._transient:
            return self._transient[case.id]
        record = self._reference_runners.of(case).load(case)
        try:
            if record is None:
                return None
            if "error" in record:
                return (), str(record["error"])
            return tuple((str(name), value_from_json(value)) for name, value in record["outputs"]), ""
        except UNREADABLE_RECORD_ERRORS:
            return None


def _record(backend: str, execution: Execution) -> dict[str, Any]:
    if execution.ending == "returned":
        return {"outputs": outputs_to_json(execution.outputs)}
    return {"error": describe_failure(backend, execution)}


def outputs_to_json(outputs: tuple[tuple[str, Value], ...]) -> list[Any]:
    """Outputs by name as JSON."""
    return [[name, value_to_json(value)] for name, value in outputs]
