"""Reference outputs for cases that ship none: ONNX's evaluator in a worker of its own, cached by content.

Computed once per case, never once per compiler (DESIGN 4). A case that fails here fails in its own
library, so it is invalid, whatever a compiler makes of it (DESIGN 5).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fuzzing.cases import TestCase
from fuzzing.cases.values import Value, value_from_json, value_to_json
from fuzzing.errors import CaseFormatError
from fuzzing.execute.execution import Execution
from fuzzing.execute.limits import Limits
from fuzzing.execute.process import Command
from fuzzing.execute.supervisor import Supervisor
from fuzzing.oracles.reference import REFERENCE_BACKEND, reference_needed, with_expected

#: Outputs, or why there are none.
Record = tuple[tuple[tuple[str, Value], ...], str]


class References:
    """The cache beside a corpus, and the evaluator behind it."""

    def __init__(self, corpus: Path, limits: Limits) -> None:
        self._folder = corpus / ".references" / f"onnx-{version('onnx')}"
        self._limits = limits
        self._passing: dict[str, Record] = {}  # what says more about limits and machine than about a case

    def complete(self, cases: Iterable[TestCase]) -> Iterator[tuple[TestCase, str]]:
        """Each case with its expected outputs, and why it is invalid ("" if it is not), in order."""
        chunk = list(cases)
        missing = [case for case in chunk if reference_needed(case) and self._load(case) is None]
        if missing:
            self._compute(missing)
        for case in chunk:
            if reference_needed(case):
                outputs, error = self._load(case) or ((), "its reference vanished")
                yield (case, error) if error else (with_expected(case, outputs), "")
            else:
                yield case, ""

    def _compute(self, cases: list[TestCase]) -> None:
        supervisor: Supervisor[TestCase] = Supervisor(
            Command(sys.executable, REFERENCE_BACKEND, limits=self._limits)
        )
        for case, execution in supervisor.run((case, case) for case in cases):
            if execution.ending in ("hung", "out_of_memory"):
                self._passing[case.id] = ((), f"the ONNX reference evaluator fails: {execution.ending}")
            else:
                self._store(case, _record(execution))

    def _path(self, case: TestCase) -> Path:
        return self._folder / case.id[:2] / f"{case.id}.json"

    def _load(self, case: TestCase) -> Record | None:
        """What is known; None too where a full disk or a crash has left no whole record."""
        if case.id in self._passing:
            return self._passing[case.id]
        try:
            record = json.loads(self._path(case).read_bytes())
            if "error" in record:
                return (), str(record["error"])
            return tuple((str(name), value_from_json(value)) for name, value in record["outputs"]), ""
        except (FileNotFoundError, ValueError, TypeError, KeyError, CaseFormatError):
            return None

    def _store(self, case: TestCase, record: dict[str, Any]) -> None:
        path = self._path(case)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps(record))
        temporary.replace(path)


def _record(execution: Execution) -> dict[str, Any]:
    if execution.ending == "returned":
        return {"outputs": [[name, value_to_json(value)] for name, value in execution.outputs]}
    how = execution.error or execution.signal or execution.ending
    return {"error": f"the ONNX reference evaluator fails: {how} {execution.message}".strip()[:2000]}
