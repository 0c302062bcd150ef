"""Folders that are made once, whole or not at all, however many want them and whoever dies half-way.

ROOT/<digest>.lock            held while <digest> is looked at or made
ROOT/<digest>.partial-…       being made; the next holder of the lock removes what a dead one left
ROOT/<digest>/                made
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from bot.file_lock import file_lock


def make_once(folder: Path, usable: Callable[[Path], bool], make: Callable[[Path], None]) -> bool:
    """Makes `folder` by `make`, unless it is there and `usable`; returns whether it was made.

    `make` fills an empty folder beside the place, which is then renamed into it, so what it makes must
    bear being moved. Whatever it raises leaves nothing behind.
    """
    with file_lock(folder.with_name(folder.name + ".lock")):
        for stale in folder.parent.glob(f"{folder.name}.partial-*"):
            shutil.rmtree(stale)
        if folder.exists():
            if usable(folder):
                return False
            shutil.rmtree(_move_aside(folder))
        partial = Path(tempfile.mkdtemp(prefix=f"{folder.name}.partial-{os.getpid()}-", dir=folder.parent))
        try:
            partial.chmod(0o755)
            make(partial)
            partial.rename(folder)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
    return True


def _move_aside(folder: Path) -> Path:
    """Renames a broken folder first: a removal that is interrupted must not leave half of it in place."""
    place = Path(tempfile.mkdtemp(prefix=f"{folder.name}.partial-{os.getpid()}-", dir=folder.parent))
    folder.rename(place / "broken")
    return place
