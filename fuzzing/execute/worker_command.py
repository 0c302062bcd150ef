"""What is needed to start a worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fuzzing.execute.limits import Limits
from fuzzing.execute.sandbox import isolation


@dataclass(frozen=True)
class WorkerCommand:
    """How to start a worker: an interpreter, a backend, a device, the backend's options, limits.

    environment  variables in addition to the backend's own
    cache        folder that outlives workers, for a backend whose environment has "{cache}"; by default one
                 for each backend and toolchain in the user's cache folder
    isolation    the best level to take (isolation.LEVELS); the kernel may allow only a lower one
    kinds        of programs whose libraries a forkserver imports, beside that of its first program
    """

    python: str
    backend: str
    device: str = "CPU"
    options: dict[str, Any] | None = None
    limits: Limits = field(default_factory=Limits)
    environment: Mapping[str, str] = field(default_factory=dict)
    cache: str = ""
    isolation: str = isolation.NAMESPACES
    kinds: tuple[str, ...] = ()
