"""`installation_repositories`: an installation may see more repositories, or fewer."""

from __future__ import annotations

from pydantic import Field

from bot.webhooks.events import ParsedEvent, event
from bot.webhooks.events.fields import ListedRepository, Payload
from bot.webhooks.events.installation import OwnedInstallation


class RepositoriesEvent(Payload):
    """The fields used."""

    action: str
    installation: OwnedInstallation
    repositories_added: list[ListedRepository] = Field(default_factory=list)
    repositories_removed: list[ListedRepository] = Field(default_factory=list)


@event("installation_repositories", actions={"added", "removed"})
def installation_repositories(payload: bytes) -> ParsedEvent:
    """The repositories that came and went."""
    fields = RepositoriesEvent.model_validate_json(payload)
    intent = fields.installation.intent(
        fields.action, added=fields.repositories_added, removed=fields.repositories_removed
    )
    return ParsedEvent(intents=(intent,))
