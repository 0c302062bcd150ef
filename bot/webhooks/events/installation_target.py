"""`installation_target`: the account that the App is installed on has another name."""

from __future__ import annotations

from pydantic import Field

from bot.webhooks.events import Meaning, event
from bot.webhooks.events.fields import Account, Installation, Login, Payload
from bot.webhooks.intents import InstallationIntent


class Was(Payload):
    """The name before."""

    was: Login = Field(alias="from")


class Changes(Payload):
    """What is another now; an enterprise has a slug instead of a login, and no repositories."""

    login: Was | None = None


class TargetEvent(Payload):
    """The fields used."""

    action: str
    installation: Installation
    account: Account
    changes: Changes


@event("installation_target", actions={"renamed"})
def installation_target(payload: bytes) -> Meaning:
    """The account's name now and before."""
    fields = TargetEvent.model_validate_json(payload)
    if fields.changes.login is None:
        return Meaning(note="the account has another slug, but the same name", ignored=True)
    intent = InstallationIntent(
        target="",
        installation=fields.installation.id,
        id=fields.installation.id,
        account=fields.account.login,
        action=fields.action,
        permissions={},
        events=(),
        before=fields.changes.login.was,
    )
    return Meaning(intents=(intent,))
