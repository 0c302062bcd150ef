"""The files of one commit of a repository."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class FileSource(Protocol):
    """Files of commits (`bot.github.repositories.Repositories`)."""

    def read(self, target: str, sha: str, path: str, /) -> bytes | None:
        """The content of a file at a commit; None if there is no such file."""
        ...


@dataclass(frozen=True)
class CommitFiles:
    """The files of one commit, as provisioners read them: called with a path."""

    repositories: FileSource
    target: str
    sha: str

    def __call__(self, path: str) -> bytes | None:
        """The content of a file; None if there is no such file."""
        return self.repositories.read(self.target, self.sha, path)
