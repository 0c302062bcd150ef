"""What this room needs of the others, as protocols; a composition root fills them in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from bot.github.resources import (
    CommentInfo,
    DeliveryInfo,
    HookInfo,
    InstallationInfo,
    IssueInfo,
    PullInfo,
    RepositoryInfo,
)
from bot.store import Database, Session, now
from bot.targets.policy import Config
from bot.webhooks.inbox_reader import Handler
from bot.webhooks.intents import CampaignIntent


class GitHubReader(Protocol):
    """What is read of GitHub (`bot.github.reader.Reader`).

    Raises RefusalError where we are not let in, its subclass NotFoundError for what is not there, and
    InfrastructureError where it is worth asking again later.
    """

    @property
    def is_app(self) -> bool:
        """Whether installations and deliveries can be asked for."""

    def login(self) -> str:
        """The login our own texts appear under."""

    def repository(self, target: str) -> RepositoryInfo:
        """A repository, under its present name."""

    def branch_head(self, target: str, branch: str) -> str:
        """The commit a branch stands at."""

    def pull(self, target: str, number: int) -> PullInfo:
        """A pull request."""

    def pulls(self, target: str) -> Sequence[PullInfo]:
        """The open pull requests."""

    def issue(self, target: str, number: int) -> IssueInfo:
        """An issue."""

    def comments_since(self, target: str, since: datetime) -> Sequence[CommentInfo]:
        """Comments written or changed since."""

    def deliveries(self, since: datetime) -> Sequence[DeliveryInfo]:
        """Attempts at deliveries since then, the newest first."""

    def redeliver(self, delivery: int) -> None:
        """Asks GitHub to deliver once more."""

    def hook_config(self) -> HookInfo:
        """Where the App's webhooks are sent."""

    def installations(self) -> Sequence[InstallationInfo]:
        """Where the App is installed."""

    def installation_repositories(self, installation: int) -> Sequence[RepositoryInfo]:
        """The repositories of an installation."""


@dataclass(frozen=True)
class RetentionPolicy:
    """How long things are kept.

    removed      rows and files of a repository that is no longer ours to see
    deliveries   webhooks that were read; longer than GitHub may deliver one again (7 days at most)
    """

    removed: timedelta = timedelta(days=30)
    deliveries: timedelta = timedelta(days=14)


@dataclass(frozen=True)
class Dependencies:
    """The collaborators of this room.

    github     None where nobody can log in there: then nothing is asked, and events are all there is
    handle_intent  does what an intent asks for, as the inbox's reader has it done
    start      makes the campaign an intent asks for
    load_config  (target, commit) → the configuration there; None for a repository that says nothing of us
    watch      repositories that are polled, whether or not an App is installed there
    """

    database: Database
    handle_intent: Handler
    start: Callable[[Session, CampaignIntent], object]
    load_config: Callable[[str, str], Config | None]
    data_dir: Path
    github: GitHubReader | None = None
    watch: tuple[str, ...] = ()
    retention_policy: RetentionPolicy = RetentionPolicy()
    clock: Callable[[], datetime] = now

    @property
    def github_api(self) -> GitHubReader:
        """GitHub, for duties that are only done where it can be asked."""
        assert self.github is not None
        return self.github
