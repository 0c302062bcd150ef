"""`installation`: somebody installed, suspended or removed the GitHub App."""

from __future__ import annotations

from pydantic import Field

from bot.webhooks.events import Meaning, event
from bot.webhooks.events.fields import Installation, Payload, Repository


class Account(Payload):
    """Whose installation it is."""

    login: str


class OwnedInstallation(Installation):
    """The installation with its owner."""

    account: Account


class InstallationChange(Payload):
    """The fields used; `repositories` comes with some actions only."""

    action: str
    installation: OwnedInstallation
    repositories: list[Repository] = Field(default_factory=list)


@event("installation")
def installation(payload: bytes) -> Meaning:
    """Recorded: what is tested is decided by pushes and each repository's own configuration."""
    change = InstallationChange.model_validate_json(payload)
    names = ", ".join(repository.full_name for repository in change.repositories[:10])
    more = len(change.repositories) - 10
    listed = names + (f" and {more} more" if more > 0 else "")
    note = f"installation {change.installation.id} of {change.installation.account.login}: {change.action}"
    return Meaning(note=f"{note} ({listed})" if listed else note)
