"""Files of the repository that a test is written for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from bot.commit_files import FileSource, ReadFile, TreeSource
from bot.errors import UsageError
from bot.proposals.globs import fits

#: Files of a folder whose paths match patterns: (folder, patterns) → path → content.
ListFolder = Callable[[str, Sequence[str]], Mapping[str, bytes]]
#: Larger files are not read to see what they test.
_MAX_BYTES = 1 << 20


def _nothing(_folder: str, _patterns: Sequence[str]) -> Mapping[str, bytes]:
    return {}


@dataclass(frozen=True)
class Tree:
    """The files of one commit, or of a folder; without a `lister` they are only read by name."""

    reader: ReadFile
    lister: ListFolder = _nothing

    def read(self, path: str) -> str | None:
        """The text of a file; None if there is no such file. Raises UsageError if it is not text."""
        data = self.reader(path)
        if data is None:
            return None
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise UsageError(f"{path} is not a text in UTF-8: {error}") from error

    def matching(self, patterns: Sequence[str]) -> dict[str, str]:
        """The texts of the files whose paths match patterns such as `tests/test_*.py`; `*` spans folders.

        Files that are no text are left out.
        """
        found: dict[str, str] = {}
        folders = {one: str(PurePosixPath(one.partition("*")[0] + "x").parent) for one in patterns}
        for folder in dict.fromkeys(folders.values()):
            names = [one for one, under in folders.items() if under == folder]
            for path, data in sorted(self.lister(folder, names).items()):
                try:
                    found[path] = data.decode("utf-8")
                except UnicodeDecodeError:
                    continue
        return found

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

    def folder_files(under: str, names: Sequence[str]) -> dict[str, bytes]:
        below = (one.relative_to(root).as_posix() for one in (root / under).rglob("*"))
        contents = {path: read(path) for path in below if fits(path, names)}
        return {path: data for path, data in contents.items() if data is not None and len(data) <= _MAX_BYTES}

    return Tree(read, folder_files)


def commit_tree(repositories: FileSource, target: str, commit: str) -> Tree:
    """The files of a commit."""
    read = partial(repositories.read, target, commit)
    if not isinstance(repositories, TreeSource):
        return Tree(read)

    def folder_files(under: str, names: Sequence[str]) -> dict[str, bytes]:
        wanted = [
            one
            for one in repositories.files(target, commit, under)
            if fits(one.path, names) and one.size <= _MAX_BYTES
        ]
        contents = repositories.blobs(target, commit, [one.blob for one in wanted]) if wanted else ()
        return {one.path: data for one, data in zip(wanted, contents, strict=True)}

    return Tree(read, folder_files)
