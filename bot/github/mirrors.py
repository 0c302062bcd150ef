"""Paths and deletion of git mirrors.

ROOT/<owner>/<name>.git   a bare mirror; names in lower case, because GitHub ignores case
ROOT/<owner>/<name>.lock  held while the mirror is used; never deleted, since a process may wait for it
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from bot.errors import InfrastructureError
from bot.file_lock import file_lock
from fuzzing.file_trees import remove_tree


def mirror_path(root: Path, target: str) -> Path:
    """The folder of a repository's mirror; `target` is owner/name."""
    owner, _, name = target.lower().partition("/")
    return root / owner / f"{name}.git"


def lock_path(mirror: Path) -> Path:
    """The lock file of a mirror."""
    return mirror.with_suffix(".lock")


def partial_path(mirror: Path) -> Path:
    """Where the holder of the lock builds the mirror."""
    return mirror.with_suffix(".partial")


def delete_mirror(root: Path, target: str) -> bool:
    """Deletes a mirror once it is not in use; returns whether there was one.

    Raises InfrastructureError if a file cannot be deleted.
    """
    mirror = mirror_path(root, target)
    parts = [mirror, partial_path(mirror)]
    if not any(part.exists() for part in parts):
        return False
    with file_lock(lock_path(mirror)):
        there = mirror.exists()
        delete(parts)
    return there


def delete(paths: Iterable[Path]) -> None:
    """Deletes folders if they exist. Raises InfrastructureError if one cannot be deleted."""
    for path in paths:
        try:
            remove_tree(path)
        except OSError as error:
            raise InfrastructureError(
                f"cannot delete {path}: {error.strerror}; check its permissions, and it is tried again"
            ) from error
