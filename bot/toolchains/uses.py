"""Who uses a toolchain: a lock for as long as it may run, and a line for each use.

ROOT/<digest>.used   JSON lines, oldest first; a shared lock on it is held by each process that uses <digest>
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bot.file_lock import unless_locked

#: Seconds for which a process that goes on holds a toolchain: longer than a campaign.
HOLD_S = 24 * 3600.0
_NOTE_EVERY_S = 3600.0  # a service asks for the same toolchain again and again
_KEPT = 20  # uses

_guard = threading.Lock()
_held: dict[Path, tuple[int, float]] = {}


@dataclass(frozen=True)
class Use:
    """One use of a toolchain: when, in seconds since the epoch, and by which program."""

    at: float
    by: str


def hold(folder: Path) -> None:
    """Keeps `folder` from being removed until this process ends, or does not ask for it for HOLD_S.

    To be called before the folder is looked for.
    """
    now = time.time()
    with _guard:
        for path, (descriptor, since) in list(_held.items()):
            if path != folder and now - since > HOLD_S:
                os.close(descriptor)
                del _held[path]
        if folder in _held and now - _held[folder][1] < _NOTE_EVERY_S:
            return
        place = _place(folder)
        place.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        if folder in _held:
            os.close(_held[folder][0])
        _held[folder] = descriptor, now
        program = " ".join([_program(), *sys.argv[1:2]])
        line = json.dumps({"at": now, "by": f"{program} (process {os.getpid()})"}) + "\n"
        with place.open("a", encoding="utf-8") as file:
            file.write(line)


@contextmanager
def unless_held(folder: Path) -> Iterator[bool]:
    """Whether no process uses `folder`; if so, none begins to within the block."""
    with unless_locked(_place(folder)) as free:
        yield free


def uses(folder: Path) -> list[Use]:
    """The last uses of a toolchain, oldest first; incomplete lines are left out."""
    place = _place(folder)
    lines = place.read_text(encoding="utf-8").splitlines() if place.exists() else []
    found = []
    for line in lines[-_KEPT:]:
        try:
            item = json.loads(line)
            found.append(Use(float(item["at"]), str(item["by"])))
        except (ValueError, KeyError, TypeError):
            continue
    return found


def _program() -> str:
    """The name of this program; of a package that is run by -m, that of the package."""
    path = Path(sys.argv[0])
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return f"python -m {spec.parent}" if path.name == "__main__.py" and spec else path.name


def _place(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.used")
