"""`installation_target`: the account that the App is installed on has another name."""

from __future__ import annotations

from pydantic import Field

from bot.webhooks.events import ParsedEvent, event
from bot.webhooks.events.fields import Account, Installation, Login, Payload
from bot.webhooks.intents import InstallationIntent


class OldLogin(Payload):
    """The name before."""

    old: Login = Field(alias="from")


class Changes(Payload):
    """What is another now; an enterprise has a slug instead of a login, and no repositories."""

    login: OldLogin | None = None


class InstallationTargetEvent(Payload):
    """The fields used."""

    action: str
    installation: Installation
    account: Account
    changes: Changes


@event("installation_target", actions={"renamed"})
def installation_target(payload: bytes) -> ParsedEvent:
    """The account's name now and before."""
    fields = InstallationTargetEvent.model_validate_json(payload)
    if fields.changes.login is None:
        return ParsedEvent(note="the account has another slug, but the same name", ignored=True)
    intent = InstallationIntent(
        target="",
        installation=fields.installation.id,
        id=fields.installation.id,
        account=fields.account.login,
        action=fields.action,
        permissions={},
        events=(),
        before=fields.changes.login.old,
    )
    return ParsedEvent(intents=(intent,))
