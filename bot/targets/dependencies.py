"""The collaborators of targets, as protocols; `bot.wiring` provides them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from bot.artifacts import Artifacts
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
from bot.webhooks.inbox_queue import Handler
from bot.webhooks.intents import CampaignIntent


class GitHubReader(Protocol):
    """Reads from GitHub (`bot.github.reader.Reader`).

    Raises RefusalError without access, its subclass NotFoundError if the resource does not exist, and
    InfrastructureError if a later retry may succeed.
    """

    @property
    def is_app(self) -> bool:
        """Whether the identity is an App, which installations and deliveries need."""

    def login(self) -> str:
        """The login of our own comments."""

    def repository(self, target: str) -> RepositoryInfo:
        """A repository, under its present name."""

    def branch_head(self, target: str, branch: str) -> str:
        """The head of a branch."""

    def pull(self, target: str, number: int) -> PullInfo:
        """A pull request."""

    def pulls(self, target: str) -> Sequence[PullInfo]:
        """The open pull requests."""

    def issue(self, target: str, number: int) -> IssueInfo:
        """An issue."""

    def comments_since(self, target: str, since: datetime) -> Sequence[CommentInfo]:
        """Comments written or edited since then."""

    def deliveries(self, since: datetime) -> Sequence[DeliveryInfo]:
        """Attempts of deliveries since then, newest first."""

    def redeliver(self, delivery: int) -> None:
        """Requests a redelivery."""

    def hook_config(self) -> HookInfo:
        """The address of the App's webhooks."""

    def installations(self) -> Sequence[InstallationInfo]:
        """The App's installations."""

    def installation_repositories(self, installation: int) -> Sequence[RepositoryInfo]:
        """The repositories of an installation."""


@dataclass(frozen=True)
class RetentionPolicy:
    """How long data is kept.

    removed      rows and files of a repository that Assay no longer has access to
    reports      files of an ended campaign; None for ever
    deliveries   processed webhooks; longer than GitHub may redeliver (7 days at most)
    toolchains   toolchains after their last use, at most `toolchain_bytes` of them
    """

    removed: timedelta = timedelta(days=30)
    reports: timedelta | None = None
    deliveries: timedelta = timedelta(days=14)
    toolchains: timedelta = timedelta(days=30)
    toolchain_bytes: int = 200 << 30


@dataclass(frozen=True)
class Dependencies:
    """The collaborators of targets.

    handle_intent  carries out an intent, as for a delivery
    start          creates the campaign of an intent
    load_config    (target, commit) → the configuration there; None for a repository without one
    github         None without credentials: then events are the only source
    watch          repositories that are polled, with or without an installation
    """

    database: Database
    handle_intent: Handler
    start: Callable[[Session, CampaignIntent], object]
    load_config: Callable[[str, str], Config | None]
    data_dir: Path
    artifacts: Artifacts
    github: GitHubReader | None = None
    watch: tuple[str, ...] = ()
    retention_policy: RetentionPolicy = RetentionPolicy()
    clock: Callable[[], datetime] = now

    @property
    def github_api(self) -> GitHubReader:
        """GitHub, for tasks that need it."""
        assert self.github is not None
        return self.github
