"""The files of one commit of a repository."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

#: Reads a file of one commit; None if it is not there.
ReadFile = Callable[[str], bytes | None]


@dataclass(frozen=True)
class TreeFile:
    """A regular file of a commit.

    path  in the repository
    blob  the id of its content
    size  in bytes
    """

    path: str
    executable: bool
    blob: str
    size: int


class FileSource(Protocol):
    """Files of commits (`bot.github.repositories.Repositories`)."""

    def read(self, target: str, sha: str, path: str, /) -> bytes | None:
        """The content of a file at a commit; None if there is no such file."""
        ...


@runtime_checkable
class TreeSource(FileSource, Protocol):
    """Whole folders of commits, too (also `bot.github.local_repository.LocalRepository`)."""

    def tree(self, target: str, sha: str, path: str, /) -> str:
        """The id of a folder's tree or of a file, "" if there is none: equal ids mean equal content."""
        ...

    def files(self, target: str, sha: str, path: str, /) -> Sequence[TreeFile]:
        """Every regular file at or below a folder, "" for all, without links and submodules."""
        ...

    def blobs(self, target: str, sha: str, ids: Sequence[str], /) -> Sequence[bytes]:
        """The contents of blobs that `files` listed at this commit, in order."""
        ...

    def tag(self, target: str, sha: str, name: str, /) -> str:
        """The commit that a tag names, "" if there is none; `sha` is any commit of the repository."""
        ...

    def tags(self, target: str, sha: str, pattern: str, /) -> Sequence[str]:
        """The tags that lead to a commit and that a regular expression matches at their beginning."""
        ...

    def change(
        self,
        target: str,
        base: str,
        head: str,
        /,
        *,
        paths: Sequence[str] = (),
        max_files: int | None = None,
        hunks: bool = True,
    ) -> Mapping[str, Any]:
        """The change between two commits, in the form of `bot.github.changes`."""
        ...

    def history(self, target: str, sha: str, limit: int, /) -> Sequence[Ancestor]:
        """A commit and those that lead to it, newest first, at most `limit` of them."""
        ...


@dataclass(frozen=True)
class Ancestor:
    """A commit, and when it was made, in seconds since the epoch."""

    sha: str
    at: float


@dataclass(frozen=True)
class CommitMessage:
    """Who made a commit, and the first line of its message."""

    sha: str
    author: str
    subject: str


@dataclass(frozen=True)
class CiArtifact:
    """An archive that a repository's CI made for a commit.

    size    in bytes, of the archive
    sha256  of the archive, "" where the server does not say
    """

    id: int
    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class CiRun:
    """A run of a workflow for a commit.

    finished   whether it has ended
    failed     whether it ended without success
    artifacts  of a run that has ended
    """

    url: str
    finished: bool
    failed: bool
    artifacts: tuple[CiArtifact, ...] = ()


class CiSource(Protocol):
    """What the repository's own CI made (`bot.github.workflow_artifacts.WorkflowArtifacts`)."""

    def workflow_run(self, target: str, sha: str, workflow: str, /) -> CiRun | None:
        """The newest run of a workflow for a commit, None if there is none."""
        ...

    def download_artifact(self, target: str, artifact: int, place: Path, max_bytes: int, /) -> None:
        """Writes an archive to a file. Raises RefusalError if it is larger than `max_bytes`."""
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
