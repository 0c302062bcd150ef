"""Out of memory: the process exceeded its limit of memory or files, or an allocator inside it failed."""

from __future__ import annotations

import re

from fuzzing.execution import Execution
from fuzzing.oracles.decision import Decision, OracleInput, register_oracle
from fuzzing.outcomes import Verdict

_CLASSES = re.compile(r"(^|\.)_?(Array)?(MemoryError|OutOfMemoryError)$")

#: Messages of allocators, with their origin.
_TEXTS = re.compile(
    "|".join(
        (
            r"\bstd::bad_alloc\b",  # C++ operator new
            r"\bbad allocation\b",  # Microsoft's C++ library
            r"\bFailed to allocate memory\b",  # onnxruntime's arena
            r"\bUnable to allocate [\d.]+ [KMGTPE]?i?B\b",  # numpy
            r"\bCannot allocate memory\b",  # ENOMEM
            r"\bnot enough memory: you tried to allocate\b",  # torch on the CPU
            r"\bCUDA out of memory\b",
            r"\bcudaErrorMemoryAllocation\b",
        )
    )
)


#: One of these is in each of the texts above, and is found in a tenth of the time; most logs have none.
_HINTS = ("lloc", "emory")


#: Ending → what exceeded its limit.
_TOTALS = {"out_of_disk": "files", "out_of_processes": "processes"}


@register_oracle(rank=30)
def out_of_memory(oracle_input: OracleInput) -> Decision | None:
    """Decides exceeded limits, and allocation failures that were raised or ended the process."""
    total = _TOTALS.get(oracle_input.execution.ending)
    if total is not None:
        return Decision(Verdict.OUT_OF_MEMORY, f"its {total} exceed their limit {oracle_input.where}")
    if not _ran_out(oracle_input.execution):
        return None
    peak = oracle_input.execution.peak_bytes
    at = f" at {peak / 2**30:.1f} GiB" if peak else ""
    return Decision(Verdict.OUT_OF_MEMORY, f"out of memory {oracle_input.where}{at}")


def _ran_out(execution: Execution) -> bool:
    if execution.ending == "out_of_memory":
        return True
    if execution.ending == "raised":
        return bool(_CLASSES.search(execution.error)) or _mentions_memory(execution.message)
    # an uncaught bad_alloc ends in abort(), with its text on stderr
    return execution.ending == "killed" and _mentions_memory(f"{execution.log}\n{execution.native}")


def _mentions_memory(text: str) -> bool:
    return any(hint in text for hint in _HINTS) and bool(_TEXTS.search(text))
