"""Files of the repository that a test is written for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from bot.errors import UsageError

#: Reads a file of one commit; None if it is not there.
ReadFile = Callable[[str], bytes | None]


@dataclass(frozen=True)
class Tree:
    """The files of one commit, or of a folder."""

    reader: ReadFile

    def read(self, path: str) -> str | None:
        """The text of a file; None if there is no such file. Raises UsageError if it is not text."""
        data = self.reader(path)
        if data is None:
            return None
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise UsageError(f"{path} is not a text in UTF-8: {error}") from error

    def has(self, path: str) -> bool:
        """Whether there is such a file."""
        return self.reader(path) is not None


def folder_tree(folder: Path) -> Tree:
    """The files of a checkout. Links that lead out of it count as absent."""
    root = folder.resolve()

    def read(path: str) -> bytes | None:
        found = (root / path).resolve()
        if ".." in PurePosixPath(path).parts or not found.is_relative_to(root) or not found.is_file():
            return None
        return found.read_bytes()

    return Tree(read)
