"""Intents: what an event on GitHub asks of Assay.

One class for each request; `bot.wiring` connects each with its handler. An intent
holds GitHub's state at the time; code that acts on it reads the state again where that matters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Intent:
    """Fields of all intents.

    target        owner/name, "" for what is about an installation as a whole
    github_id     GitHub's id of the repository, stable over renames; None if not given
    installation  the GitHub App's installation there, None where no App is used
    delivery      the delivery that asked for it, "" where it was found out by asking
    """

    target: str
    github_id: int | None = None
    installation: int | None = None
    delivery: str = ""


@dataclass(frozen=True)
class Ignored:
    """What whoever was to carry out an intent answers when nothing was to be done about it, and why."""

    why: str


@dataclass(frozen=True, kw_only=True)
class CampaignIntent(Intent):
    """Test a commit.

    head, base    commits; base is "" where there is none to compare with
    ref           what was pushed, such as refs/heads/main
    trigger       "push", "pull_request:7", …: with target and commits it makes a campaign unique
    pull          the pull request it is about
    requested_by      the login of whoever asked, "" for an event
    overrides     fields of the configuration that hold for this campaign alone
    at            GitHub's time of the push, None if not given
    """

    head: str
    base: str
    ref: str
    trigger: str
    pull: int | None = None
    requested_by: str = ""
    overrides: Mapping[str, Any] = field(default_factory=dict)
    at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class PullIntent(Intent):
    """The state of a pull request; `action` is what happened to it.

    head, base         commits; base_ref is the branch it is to be merged into
    head_repository    owner/name of what it comes from, "" where that is gone
    association        GitHub's author_association, such as FIRST_TIME_CONTRIBUTOR
    state              open, closed or merged
    updated_at         GitHub's time of this state: what is older than what is known changes nothing
    """

    number: int
    action: str
    head: str
    base: str
    base_ref: str
    head_repository: str
    author: str
    association: str
    draft: bool
    state: str
    updated_at: datetime


@dataclass(frozen=True, kw_only=True)
class CommentIntent(Intent):
    """Somebody wrote or edited a comment, which may hold commands.

    comment     GitHub's id of it
    number      the issue or pull request; on_pull says which of the two
    author      who wrote it, or who edited it last where that is known
    bot         whether a program wrote it
    written_at  GitHub's time of the text, None where it is not known
    """

    comment: int
    number: int
    on_pull: bool
    author: str
    bot: bool
    association: str
    body: str
    edited: bool = False
    written_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class IssueIntent(Intent):
    """Something happened to an issue: closed, reopened, deleted, transferred, labeled.

    label   the label it was given, "" for other actions
    """

    number: int
    action: str
    sender: str
    bot: bool
    state: str
    state_reason: str
    updated_at: datetime
    label: str = ""


@dataclass(frozen=True, kw_only=True)
class CheckIntent(Intent):
    """Somebody used one of our check runs.

    action       "rerequested", or the identifier of the button that was pressed
    external_id  the key of the effect that made it, "" for a whole suite
    app          the id and the client id of the App that made it, as far as given
    """

    action: str
    head: str
    external_id: str
    sender: str
    app: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CiIntent(Intent):
    """The repository's own CI ended for a commit: its artifacts may be there now."""

    head: str


@dataclass(frozen=True, kw_only=True)
class MergeGroupIntent(Intent):
    """A merge queue requests checks of a commit; base is the commit it would be merged onto."""

    head: str
    base: str
    ref: str


@dataclass(frozen=True, kw_only=True)
class RepositoryRef:
    """A repository as an installation event names it."""

    name: str
    github_id: int
    private: bool


@dataclass(frozen=True, kw_only=True)
class InstallationIntent(Intent):
    """The App was installed, changed or removed; `target` is "".

    action      created, deleted, suspend, unsuspend, new_permissions_accepted, added, removed, renamed
    added, removed   repositories
    before      what the account was called before, where it was renamed
    updated_at  GitHub's time of this state, None if not given; older events change nothing
    """

    id: int
    account: str
    action: str
    permissions: Mapping[str, str]
    events: tuple[str, ...]
    added: tuple[RepositoryRef, ...] = ()
    removed: tuple[RepositoryRef, ...] = ()
    before: str = ""
    updated_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class RepositoryIntent(Intent):
    """Something happened to a repository: renamed, transferred, deleted, archived, unarchived, edited …

    target      its name now
    before      its name before, where it was renamed or transferred
    """

    action: str
    github_id: int
    before: str = ""
    default_branch: str = ""
    private: bool = False
    archived: bool = False
    has_issues: bool = True
