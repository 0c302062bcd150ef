"""`installation`: the GitHub App was installed, suspended or removed, or new permissions accepted."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from bot.webhooks.events import ParsedEvent, event
from bot.webhooks.events.fields import Account, Installation, ListedRepository, Payload, Timestamp
from bot.webhooks.intents import InstallationIntent

ACTIONS = frozenset({"created", "deleted", "suspend", "unsuspend", "new_permissions_accepted"})


class OwnedInstallation(Installation):
    """The installation with its owner and what it allows."""

    account: Account
    permissions: dict[str, str] = Field(default_factory=dict)
    events: list[str] = Field(default_factory=list)
    updated_at: Timestamp | None = None

    def intent(
        self,
        action: str,
        *,
        added: Sequence[ListedRepository] = (),
        removed: Sequence[ListedRepository] = (),
    ) -> InstallationIntent:
        """What happened to it."""
        return InstallationIntent(
            target="",
            installation=self.id,
            id=self.id,
            account=self.account.login,
            action=action,
            permissions=self.permissions,
            events=tuple(self.events),
            added=tuple(repository.to_ref() for repository in added),
            removed=tuple(repository.to_ref() for repository in removed),
            updated_at=self.updated_at,
        )


class InstallationEvent(Payload):
    """The fields used; `repositories` comes with some actions only."""

    action: str
    installation: OwnedInstallation
    repositories: list[ListedRepository] | None = None


@event("installation", actions=ACTIONS)
def installation(payload: bytes) -> ParsedEvent:
    """The installation as it is now, and the repositories it brings or takes along."""
    fields = InstallationEvent.model_validate_json(payload)
    listed = fields.repositories or []
    gone = fields.action == "deleted"
    intent = fields.installation.intent(
        fields.action, added=[] if gone else listed, removed=listed if gone else []
    )
    return ParsedEvent(intents=(intent,))
