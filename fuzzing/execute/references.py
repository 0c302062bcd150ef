"""Reference outputs for cases that ship none: their own library in a worker of its own, cached by content.

Computed once per case, never once per compiler (DESIGN 4). A case that fails here fails in its own
library, so it is invalid, whatever a compiler makes of it (DESIGN 5).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from fuzzing.cases import TestCase
from fuzzing.cases.values import Value, value_from_json, value_to_json
from fuzzing.execute.execution import Execution
from fuzzing.execute.library import SPOILED, Libraries, Library, why
from fuzzing.oracles.reference import reference_needed, with_expected

#: Outputs, or why there are none.
Record = tuple[tuple[tuple[str, Value], ...], str]


class References:
    """The references of a corpus's cases.

    cached  how many of them had been computed before
    """

    def __init__(self, libraries: Libraries) -> None:
        self._libraries = libraries
        self._passing: dict[str, Record] = {}  # what says more about limits and machine than about a case
        self.cached = 0

    def complete(self, cases: Iterable[TestCase]) -> Iterator[tuple[TestCase, str]]:
        """Each case with its expected outputs, and why it is invalid ("" if it is not), in order."""
        chunk = list(cases)
        needed = [case for case in chunk if reference_needed(case)]
        missing = [case for case in needed if self._load(case) is None]
        self.cached += len(needed) - len(missing)
        for library, some in self._libraries.groups(missing):
            self._compute(library, some)
        for case in chunk:
            if reference_needed(case):
                outputs, error = self._load(case) or ((), "its reference vanished")
                yield (case, error) if error else (with_expected(case, outputs), "")
            else:
                yield case, ""

    def _compute(self, library: Library, cases: list[TestCase]) -> None:
        name = library.backend.name
        for case, execution in library.run((case, case) for case in cases):
            if execution.ending in ("hung", "out_of_memory"):
                self._passing[case.id] = ((), why(name, execution))
            else:
                library.store(case, _record(name, execution))

    def _load(self, case: TestCase) -> Record | None:
        if case.id in self._passing:
            return self._passing[case.id]
        record = self._libraries.of(case).load(case)
        try:
            if record is None:
                return None
            if "error" in record:
                return (), str(record["error"])
            return tuple((str(name), value_from_json(value)) for name, value in record["outputs"]), ""
        except SPOILED:
            return None


def _record(backend: str, execution: Execution) -> dict[str, Any]:
    if execution.ending == "returned":
        return {"outputs": outputs_to_json(execution.outputs)}
    return {"error": why(backend, execution)}


def outputs_to_json(outputs: tuple[tuple[str, Value], ...]) -> list[Any]:
    """Outputs by name as JSON."""
    return [[name, value_to_json(value)] for name, value in outputs]
