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
from fuzzing.cases.values import value_from_json, value_to_json
from fuzzing.errors import CaseFormatError
from fuzzing.execute.execution import Execution
from fuzzing.execute.limits import Limits
from fuzzing.execute.process import Command
from fuzzing.execute.supervisor import Supervisor
from fuzzing.oracles.reference import REFERENCE_BACKEND, reference_needed, with_expected


class References:
    """The cache beside a corpus, and the evaluator behind it."""

    def __init__(self, corpus: Path, limits: Limits) -> None:
        self._folder = corpus / ".references" / f"onnx-{version('onnx')}"
        self._limits = limits

    def complete(self, cases: Iterable[TestCase]) -> Iterator[tuple[TestCase, str]]:
        """Each case with its expected outputs, and why it is invalid ("" if it is not), in order."""
        chunk = list(cases)
        missing = [case for case in chunk if reference_needed(case) and self._load(case) is None]
        if missing:
            self._compute(missing)
        for case in chunk:
            if reference_needed(case):
                yield _completed(case, self._load(case) or {"error": "its reference vanished"})
            else:
                yield case, ""

    def _compute(self, cases: list[TestCase]) -> None:
        supervisor: Supervisor[TestCase] = Supervisor(
            Command(sys.executable, REFERENCE_BACKEND, limits=self._limits)
        )
        for case, execution in supervisor.run((case, case) for case in cases):
            self._store(case, _record(execution))

    def _path(self, case: TestCase) -> Path:
        return self._folder / case.id[:2] / f"{case.id}.json"

    def _load(self, case: TestCase) -> dict[str, Any] | None:
        try:
            record: dict[str, Any] = json.loads(self._path(case).read_bytes())
        except FileNotFoundError:
            return None
        return record

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


def _completed(case: TestCase, record: dict[str, Any]) -> tuple[TestCase, str]:
    if "error" in record:
        return case, str(record["error"])
    try:
        outputs = tuple((str(name), value_from_json(value)) for name, value in record["outputs"])
    except CaseFormatError as error:
        return case, f"its reference cannot be read: {error}"
    return with_expected(case, outputs), ""
