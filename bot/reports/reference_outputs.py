"""Reference outputs computed by the library, stored beside the corpus."""

from __future__ import annotations

import sys
from pathlib import Path

from fuzzing.cases import TestCase
from fuzzing.cases.values import value_from_json
from fuzzing.execute.limits import Limits
from fuzzing.execute.reference_runner import UNREADABLE_RECORD_ERRORS, ReferenceRunner
from fuzzing.oracles.reference import needs_reference, with_reference

#: Maximum bytes of outputs in a reproducer; it computes larger ones with the library.
MAX_BYTES = 64 << 10
#: Frontends whose library is not part of a toolchain; other scripts compute the outputs.
_FRONTENDS = frozenset({"onnx"})


def add_reference_outputs(case: TestCase, corpus: Path) -> TestCase:
    """The case with its stored reference outputs, if it needs them and they are small enough."""
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
