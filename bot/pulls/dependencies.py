"""The protocols of GitHub and git that pull requests need; `bot.wiring` provides them."""

from __future__ import annotations

from typing import Protocol

from bot.store.pulls import PullRequestData


class GitHubReader(Protocol):
    """GitHub, for reading (`bot.github.reader.Reader`).

    Raises RefusalError if the repository or pull request is not available, InfrastructureError if GitHub does
    not respond.
    """

    def pull(self, target: str, number: int) -> PullRequestData:
        """The pull request as it is now."""

    def permission(self, target: str, login: str) -> str:
        """The role of a login in the target: admin, maintain, write, triage, read or none."""


class Mirrors(Protocol):
    """Commits (`bot.github.repositories.Repositories`)."""

    def read(self, target: str, sha: str, path: str) -> bytes | None:
        """A file of a commit; None if it is not there."""

    def merge_base(self, target: str, base: str, head: str) -> str:
        """The merge base of two commits; "" if they share no history."""
