"""What this room needs of GitHub and of git, as protocols; `bot.wiring` fills them in."""

from __future__ import annotations

from typing import Protocol

from bot.store.pulls import PullRequestData


class GitHubReader(Protocol):
    """GitHub, for reading (`bot.github.reader.Reader`).

    Raises RefusalError where the repository or pull request is not to be had, InfrastructureError where
    GitHub does not answer.
    """

    def pull(self, target: str, number: int) -> PullRequestData:
        """The pull request as it is now."""

    def permission(self, target: str, login: str) -> str:
        """The role of somebody in the target: admin, maintain, write, triage, read or none."""


class Mirrors(Protocol):
    """Commits (`bot.github.repositories.Repositories`)."""

    def read(self, target: str, sha: str, path: str) -> bytes | None:
        """A file of a commit; None if it is not there."""

    def merge_base(self, target: str, base: str, head: str) -> str:
        """The commit at which two parted; "" if they have no history in common."""
