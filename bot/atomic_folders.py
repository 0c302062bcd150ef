"""Folders made once, atomically, by any number of processes.

ROOT/<digest>.lock            held while <digest> is checked or made
ROOT/<digest>.partial-…       being made; leftovers of dead processes are removed by the next lock holder
ROOT/<digest>/                made
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from bot.file_lock import file_lock
from fuzzing.file_trees import discard_tree, remove_tree


def make_once(folder: Path, usable: Callable[[Path], bool], make: Callable[[Path], None]) -> bool:
    """Makes `folder` by `make`, unless it exists and is `usable`; returns whether it was made.

    `make` fills an empty folder that is then renamed, so its content must be relocatable. Its exceptions
    leave nothing behind.
    """
    with file_lock(folder.with_name(folder.name + ".lock")):
        for stale in folder.parent.glob(f"{folder.name}.partial-*"):
            remove_tree(stale)
        if folder.exists():
            if usable(folder):
                return False
            remove_tree(move_aside(folder))
        partial = Path(tempfile.mkdtemp(prefix=f"{folder.name}.partial-{os.getpid()}-", dir=folder.parent))
        try:
            partial.chmod(0o755)
            make(partial)
            partial.rename(folder)
        except BaseException:
            discard_tree(partial)
            raise
    return True


def move_aside(folder: Path) -> Path:
    """Renames a folder that is to be removed: an interrupted removal must not leave half of it in place."""
    place = Path(tempfile.mkdtemp(prefix=f"{folder.name}.partial-{os.getpid()}-", dir=folder.parent))
    folder.rename(place / "broken")
    return place
