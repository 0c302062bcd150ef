"""Patterns of paths, as configurations of linters have them."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import PurePosixPath


def fits(path: str, patterns: Iterable[str]) -> bool:
    """Whether a pattern matches a whole path; `*` spans folders and `**/` may match none."""
    return any(fnmatchcase(path, one) or fnmatchcase(path, one.replace("**/", "")) for one in patterns)


def excludes(path: str, patterns: Iterable[str]) -> bool:
    """Whether a pattern matches a path, a folder that it is in, or the name of one of these."""
    wanted = [one.removeprefix("./").rstrip("/") for one in patterns]
    parts = [PurePosixPath(path), *PurePosixPath(path).parents]
    return any(fits(str(one), wanted) or fits(one.name, wanted) for one in parts if one.name)
