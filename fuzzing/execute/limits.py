"""Limits of a case's time and memory."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from fuzzing.errors import UsageError
from fuzzing.execute.process_usage import MAX_TREE
from fuzzing.outcomes import Phase


@dataclass(frozen=True)
class Limits:
    """Wall-clock seconds for each phase, and bytes.

    The times are a thousand times the usual ones (milliseconds for one operator), since a hang counts as a
    compiler failure. The longest compilation in our campaigns that ended took 21 s (inductor).

    memory_bytes   resident memory of a worker and its child processes together, compiler included
    file_bytes     largest file a worker may write
    scratch_bytes  a worker's files together, each at least 16 KiB (`fuzzing.file_trees`)
    processes      of a worker, itself included; at most process_usage.MAX_TREE are counted
    """

    import_s: float = 300.0
    convert_s: float = 60.0
    compile_s: float = 60.0
    run_s: float = 30.0
    memory_bytes: int = 4 << 30
    file_bytes: int = 1 << 30
    scratch_bytes: int = 4 << 30
    processes: int = MAX_TREE

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
                raise UsageError(f"the limit {name} must be a number above 0, not {value!r}")

    def seconds(self, phase: Phase) -> float:
        """The time limit of `phase` in seconds."""
        allowed: float = getattr(self, f"{phase.value}_s")
        return allowed

    def with_times(self, factor: float) -> Limits:
        """The same with the times of a case multiplied; that of importing the compiler stays."""
        times = {name: getattr(self, name) * factor for name in ("convert_s", "compile_s", "run_s")}
        return replace(self, **times)

    def to_json(self) -> dict[str, Any]:
        """The limits as JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, obj: dict[str, Any]) -> Limits:
        """The inverse of `to_json`; raises UsageError for unknown names."""
        try:
            return cls(**obj)
        except TypeError as error:
            raise UsageError(f"unknown limit: {error}") from None
