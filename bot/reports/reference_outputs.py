"""Expected outputs that the library computed for a case which ships none, taken from beside the corpus."""

from __future__ import annotations

import sys
from pathlib import Path

from fuzzing.cases import TestCase
from fuzzing.cases.values import value_from_json
from fuzzing.execute.limits import Limits
from fuzzing.execute.reference_runner import UNREADABLE_RECORD_ERRORS, ReferenceRunner
from fuzzing.oracles.reference import needs_reference, with_reference

#: Outputs that a reproducer carries, in bytes; longer ones it has to compute, with the library.
MAX_BYTES = 64 << 10
#: Programs whose library no toolchain brings along; of the others the script asks the library itself.
_FRONTENDS = frozenset({"onnx"})


def add_reference_outputs(case: TestCase, corpus: Path) -> TestCase:
    """The case with the outputs that were computed for it, where they are known and no toolchain can tell."""
    if not needs_reference(case) or case.program.frontend not in _FRONTENDS:
        return case
    record = ReferenceRunner(case.program.kind, corpus, sys.executable, Limits()).load(case)
    try:
        if record is None or "error" in record:
            return case
        outputs = tuple((str(name), value_from_json(value)) for name, value in record["outputs"])
    except UNREADABLE_RECORD_ERRORS:
        return case
    large = sum(len(getattr(value, "data", b"")) for _, value in outputs) > MAX_BYTES
    return case if large else with_reference(case, outputs)
