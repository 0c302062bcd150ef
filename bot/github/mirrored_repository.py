"""One repository of a server, read as a local one is (`bot.github.local_repository`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bot.commit_files import Ancestor, CiSource, CommitMessage, TreeFile
from bot.github.repositories import Repositories


@dataclass(frozen=True)
class MirroredRepository:
    """The repository `target`. Methods ignore the target that they are given.

    known  any commit of it, by which its tags are found
    """

    repositories: Repositories
    target: str
    known: str

    #: The revision that is tested unless another is named.
    newest = "HEAD"

    @property
    def ci(self) -> CiSource | None:
        """What the repository's own CI made; None without access to it."""
        return self.repositories.ci

    def resolve(self, revision: str) -> str:
        """The commit id of a branch, tag, reference or commit; raises UsageError if there is none."""
        return self.repositories.resolve(self.target, revision)

    def parent(self, sha: str) -> str:
        """The first parent; raises UsageError for a root commit."""
        return self.resolve(f"{sha}^")

    def changed_files(self, _target: str, base: str, head: str) -> tuple[str, ...]:
        """The paths that differ between two commits."""
        return self.repositories.changed_files(self.target, base, head)

    def change(self, _target: str, base: str, head: str, **limits: Any) -> dict[str, Any]:
        """The change between two commits, in the form of `bot.github.changes`, and with its limits."""
        return self.repositories.change(self.target, base, head, **limits)

    def default_branch(self, _target: str) -> str:
        """The branch that the server names as such."""
        return self.repositories.default_branch(self.target)

    def read(self, _target: str, sha: str, path: str) -> bytes | None:
        """The content of a file at a commit; None if there is no such file."""
        return self.repositories.read(self.target, sha, path)

    def tree(self, _target: str, sha: str, path: str) -> str:
        """The id of a folder's tree."""
        return self.repositories.tree(self.target, sha, path)

    def files(self, _target: str, sha: str, path: str) -> tuple[TreeFile, ...]:
        """Every regular file at or below a folder."""
        return self.repositories.files(self.target, sha, path)

    def blobs(self, _target: str, sha: str, ids: Sequence[str]) -> tuple[bytes, ...]:
        """The contents of blobs."""
        return self.repositories.blobs(self.target, sha, ids)

    def tag(self, _target: str, sha: str, name: str) -> str:
        """The commit of a tag, "" if there is none."""
        return self.repositories.tag(self.target, sha or self.known, name)

    def tags(self, _target: str, sha: str, pattern: str) -> tuple[str, ...]:
        """The tags that lead to a commit and that a regular expression matches."""
        return self.repositories.tags(self.target, sha, pattern)

    def history(self, _target: str, sha: str, limit: int) -> tuple[Ancestor, ...]:
        """A commit and those that lead to it, newest first."""
        return self.repositories.history(self.target, sha, limit)

    def merge_base(self, one: str, other: str) -> str:
        """The commit at which two lines parted, "" if they have none in common."""
        return self.repositories.merge_base(self.target, one, other)

    def commits(self, _target: str, base: str, head: str, paths: Sequence[str]) -> tuple[str, ...]:
        """Commits after base up to head that change one of these paths; oldest first."""
        return self.repositories.commits(self.target, base, head, paths)

    def parents(self, sha: str) -> tuple[str, ...]:
        """All parents, the first one first."""
        return self.repositories.parents(self.target, sha)

    def message(self, sha: str) -> CommitMessage:
        """Author and subject of a commit."""
        return self.repositories.message(self.target, sha)
