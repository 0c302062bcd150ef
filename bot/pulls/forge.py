"""What this room needs of GitHub and of git, as protocols; `bot.compose` fills them in."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from bot.config import RepositoryConfig


class PullFacts(Protocol):
    """A pull request as GitHub tells it now (`bot.github.facts.PullFacts`); fields as in `PullIntent`."""

    @property
    def number(self) -> int:
        """Its number."""

    @property
    def head(self) -> str:
        """The commit at its head."""

    @property
    def base(self) -> str:
        """The commit at the head of the branch it is to be merged into."""

    @property
    def base_ref(self) -> str:
        """The name of that branch."""

    @property
    def head_repository(self) -> str:
        """owner/name of what it comes from, "" where that is gone."""

    @property
    def author(self) -> str:
        """A login."""

    @property
    def association(self) -> str:
        """GitHub's author_association."""

    @property
    def draft(self) -> bool:
        """Whether it is a draft."""

    @property
    def state(self) -> str:
        """open, closed or merged."""

    @property
    def updated_at(self) -> datetime:
        """GitHub's time of this state."""


class Forge(Protocol):
    """GitHub, for reading (`bot.github.reading.Reader`).

    Raises RefusalError where the repository or pull request is not to be had, InfrastructureError where
    GitHub does not answer.
    """

    def pull(self, target: str, number: int) -> PullFacts:
        """The pull request as it is now."""

    def permission(self, target: str, login: str) -> str:
        """The role of somebody in the target: admin, maintain, write, triage, read or none."""


class Mirrors(Protocol):
    """Commits (`bot.github.repositories.Repositories`)."""

    def read(self, target: str, sha: str, path: str) -> bytes | None:
        """A file of a commit; None if it is not there."""

    def merge_base(self, target: str, base: str, head: str) -> str:
        """The commit at which two parted; "" if they have no history in common."""


#: Text and name of `.github/assay.yml` → the configuration; raises ConfigError.
ParseConfig = Callable[[bytes, str], RepositoryConfig]
#: How a repository without one is configured, read by path; None if nothing there is to be tested.
DefaultConfig = Callable[[Callable[[str], bytes | None]], RepositoryConfig | None]
