"""Out of memory: the process was ended for its memory, or an allocator inside it gave up."""

from __future__ import annotations

import re

from fuzzing.execution import Execution
from fuzzing.oracles.decision import Decision, OracleInput, register_oracle
from fuzzing.outcomes import Verdict

_CLASSES = re.compile(r"(^|\.)_?(Array)?(MemoryError|OutOfMemoryError)$")

#: How allocators give up, with who says so.
_TEXTS = re.compile(
    "|".join(
        (
            r"\bstd::bad_alloc\b",  # C++ operator new
            r"\bbad allocation\b",  # the same in Microsoft's library
            r"\bFailed to allocate memory\b",  # onnxruntime's arena
            r"\bUnable to allocate [\d.]+ [KMGTPE]?i?B\b",  # numpy
            r"\bCannot allocate memory\b",  # ENOMEM
            r"\bnot enough memory: you tried to allocate\b",  # torch on the CPU
            r"\bCUDA out of memory\b",
            r"\bcudaErrorMemoryAllocation\b",
        )
    )
)


#: One of these is in each of the texts above, and is found at a tenth of what they take: most logs hold none.
_HINTS = ("lloc", "emory")


@register_oracle(rank=30)
def out_of_memory(oracle_input: OracleInput) -> Decision | None:
    """Speaks for memory limits and for allocation failures that were raised or ended the process."""
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
    # a bad_alloc that nobody caught ends in abort(), with its text on stderr
    return execution.ending == "killed" and _mentions_memory(f"{execution.log}\n{execution.native}")


def _mentions_memory(text: str) -> bool:
    return any(hint in text for hint in _HINTS) and bool(_TEXTS.search(text))
