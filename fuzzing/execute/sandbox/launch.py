"""The command line that starts a program behind the walls."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from fuzzing.execute.sandbox import isolation, launcher

#: Largest file that a program may write, in bytes, where nothing else is said.
FILE_BYTES = 1 << 30


def sandboxed_command(
    command: Sequence[str],
    *,
    writable: Sequence[str | Path],
    best: str = isolation.NAMESPACES,
    required: str = isolation.NONE,
    cores: Collection[int] = (),
    memory_bytes: int | None = None,
    file_bytes: int = FILE_BYTES,
) -> list[str]:
    """`command` as it is started behind the walls; nothing of it runs outside.

    writable      folders, absolute, in which it may write
    best          the best level to take, of isolation.LEVELS; the kernel may allow only a lower one
    required      the lowest level that will do; below it the process exits with launcher.NOT_CONFINED
    memory_bytes  private writable memory of each process

    The process dies with the thread that started it. Its environment is the caller's to choose: the walls
    hide no variable.
    """
    spec = {
        "command": list(command),
        "isolation": best,
        "required": required,
        "writable": [str(folder) for folder in writable],
        "cores": sorted(cores),
        "memory_bytes": memory_bytes,
        "file_bytes": file_bytes,
    }
    return [sys.executable, "-I", "-S", launcher.__file__, json.dumps(spec)]
