"""`repository`: one was renamed, given away, archived, made private, deleted, or set otherwise."""

from __future__ import annotations

from pydantic import Field

from bot.webhooks.events import ParsedEvent, event
from bot.webhooks.events.fields import Account, ActionPayload, Id, Payload, Repository
from bot.webhooks.intents import RepositoryIntent

ACTIONS = frozenset(
    {
        "renamed",
        "transferred",
        "deleted",
        "archived",
        "unarchived",
        "privatized",
        "publicized",
        "edited",
    }
)


class RepositorySettings(Repository):
    """The repository with the settings that matter here."""

    id: Id
    name: str
    private: bool = False
    archived: bool = False
    has_issues: bool = True
    default_branch: str = Field("", max_length=1024)


class OldName(Payload):
    """What it was called."""

    old: str = Field(alias="from", max_length=100)


class RepositoryRename(Payload):
    """The name is another."""

    name: OldName


class OldOwner(Payload):
    """Whose it was: a user's or an organization's."""

    user: Account | None = None
    organization: Account | None = None

    @property
    def login(self) -> str:
        """The account's name, "" if not given."""
        account = self.organization or self.user
        return account.login if account else ""


class OwnershipTransfer(Payload):
    """The owner is another."""

    old: OldOwner = Field(alias="from")


class Changes(Payload):
    """What is another now."""

    repository: RepositoryRename | None = None
    owner: OwnershipTransfer | None = None


class RepositoryEvent(ActionPayload):
    """The fields used."""

    repository: RepositorySettings
    changes: Changes | None = None


@event("repository", actions=ACTIONS)
def repository(payload: bytes) -> ParsedEvent:
    """The repository as it is now, and its name before."""
    fields = RepositoryEvent.model_validate_json(payload)
    intent = RepositoryIntent(
        target=fields.repository.full_name,
        github_id=fields.repository.id,
        installation=fields.installation.id if fields.installation else None,
        action=fields.action,
        before=_previous_name(fields),
        default_branch=fields.repository.default_branch,
        private=fields.repository.private,
        archived=fields.repository.archived,
        has_issues=fields.repository.has_issues,
    )
    return ParsedEvent(intents=(intent,))


def _previous_name(fields: RepositoryEvent) -> str:
    """owner/name before it was renamed or given away; "" for other actions."""
    owner, _, name = fields.repository.full_name.partition("/")
    changes = fields.changes
    if fields.action == "renamed" and changes is not None and changes.repository is not None:
        return f"{owner}/{changes.repository.name.old}"
    if fields.action == "transferred" and changes is not None and changes.owner is not None:
        login = changes.owner.old.login
        return f"{login}/{name}" if login else ""
    return ""
