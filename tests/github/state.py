"""The double's records. Ids count up over all of GitHub, numbers within a repository."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.github.git import Git

Clock = Callable[[], datetime]

#: Roles of collaborators, weakest first ("Repository roles for an organization").
ROLES = ("none", "read", "triage", "write", "maintain", "admin")


def wall_clock() -> datetime:
    """The current time, in seconds as at GitHub."""
    return datetime.now(UTC).replace(microsecond=0)


def stamp(at: datetime | None) -> str | None:
    """A time in GitHub's format."""
    return None if at is None else at.strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class Account:
    """An account; type is User, Bot or Organization."""

    id: int
    login: str
    type: str = "User"


@dataclass
class Label:
    """A label of a repository."""

    id: int
    name: str
    color: str = "ededed"
    description: str | None = None


@dataclass
class Reaction:
    """A reaction to an issue (number) or a comment (its id)."""

    id: int
    author: Account
    content: str
    issue: int
    comment: int | None
    created_at: datetime


@dataclass
class Comment:
    """A comment on an issue or pull request."""

    id: int
    issue: int
    author: Account
    body: str
    created_at: datetime
    updated_at: datetime


@dataclass
class Pull:
    """The additional data of a pull request.

    head_repository   None once the fork was deleted
    head_sha          follows the branch as long as it is open
    """

    head_repository: Repository | None
    head_ref: str
    base_ref: str
    head_sha: str
    base_sha: str
    draft: bool = False
    merged_at: datetime | None = None
    merged_by: Account | None = None
    merge_commit: str | None = None


@dataclass
class Issue:
    """An issue, or a pull request if `pull` is set."""

    id: int
    number: int
    author: Account
    title: str
    body: str | None
    created_at: datetime
    updated_at: datetime
    labels: list[str] = field(default_factory=list)
    state: str = "open"
    state_reason: str | None = None
    closed_at: datetime | None = None
    closed_by: Account | None = None
    pull: Pull | None = None


@dataclass
class CheckSuite:
    """All our check runs of one commit."""

    id: int
    head_sha: str
    head_branch: str | None
    created_at: datetime


@dataclass
class CheckRun:
    """A check run; `fields` is its App's last update, `annotations` are all it ever sent."""

    id: int
    suite: CheckSuite
    head_sha: str
    fields: dict[str, Any]
    annotations: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Status:
    """A commit status in one context; a later one replaces it."""

    id: int
    sha: str
    author: Account
    context: str
    state: str
    description: str | None
    target_url: str | None
    created_at: datetime


@dataclass
class WorkflowRun:
    """A run of a workflow.

    artifacts  the bytes of each archive by its id and name
    inputs     of the dispatch that started it
    """

    id: int
    workflow: str
    head_sha: str
    status: str = "in_progress"
    conclusion: str | None = None
    artifacts: dict[tuple[int, str], bytes] = field(default_factory=dict)
    title: str = ""
    inputs: dict[str, str] = field(default_factory=dict)


@dataclass
class Repository:
    """A repository; its commits are in `git`."""

    id: int
    owner: Account
    name: str
    git: Git
    created_at: datetime
    private: bool = False
    archived: bool = False
    has_issues: bool = True
    deleted: bool = False
    default_branch: str = "main"
    fork_of: Repository | None = None
    roles: dict[str, str] = field(default_factory=dict)
    issues: dict[int, Issue] = field(default_factory=dict)
    comments: dict[int, Comment] = field(default_factory=dict)
    reactions: dict[int, Reaction] = field(default_factory=dict)
    labels: dict[str, Label] = field(default_factory=dict)
    suites: dict[int, CheckSuite] = field(default_factory=dict)
    check_runs: dict[int, CheckRun] = field(default_factory=dict)
    statuses: list[Status] = field(default_factory=list)
    workflow_runs: list[WorkflowRun] = field(default_factory=list)

    @property
    def full_name(self) -> str:
        """owner/name."""
        return f"{self.owner.login}/{self.name}"

    def role(self, login: str) -> str:
        """The role of a login."""
        if login == self.owner.login:
            return "admin"
        return self.roles.get(login, "none" if self.private else "read")

    def at_least(self, login: str, role: str) -> bool:
        """Whether a login has this role or a stronger one."""
        return ROLES.index(self.role(login)) >= ROLES.index(role)


@dataclass
class Installation:
    """An installation of the App in an account."""

    id: int
    account: Account
    permissions: dict[str, str]
    events: list[str]
    created_at: datetime
    repositories: set[int] = field(default_factory=set)
    suspended_at: datetime | None = None
    deleted: bool = False


@dataclass
class GitHubState:
    """All records. `names` maps every present and former name of a repository, in lower case, to it."""

    clock: Clock
    ids: Iterator[int] = field(default_factory=lambda: itertools.count(1001))
    #: Ids of deliveries; separate, because their number varies and must not affect the others.
    delivery_ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    accounts: dict[str, Account] = field(default_factory=dict)
    repositories: dict[int, Repository] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    installations: dict[int, Installation] = field(default_factory=dict)

    def account(self, login: str, type_: str = "User") -> Account:
        """The account of a login, created if it is missing."""
        if login not in self.accounts:
            kind = "Bot" if login.endswith("[bot]") else type_
            self.accounts[login] = Account(next(self.ids), login, kind)
        return self.accounts[login]

    def named(self, full_name: str) -> Repository | None:
        """The repository with this present or former name."""
        known = self.names.get(full_name.lower())
        found = None if known is None else self.repositories[known]
        return None if found is None or found.deleted else found

    def installation_of(self, repository: Repository) -> Installation | None:
        """The App's installation that has a repository."""
        for one in self.installations.values():
            if repository.id in one.repositories and not one.deleted:
                return one
        return None
