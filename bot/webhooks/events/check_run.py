"""`check_run`: a check was requested again, or one of its buttons used.

GitHub sends both to the App alone whose check it is; a repository's own webhook does not get them.
"""

from __future__ import annotations

from pydantic import Field

from bot.webhooks.events import ParsedEvent, event
from bot.webhooks.events.fields import ActionPayload, Id, Payload, Sha
from bot.webhooks.intents import CheckIntent


class App(Payload):
    """The App that made a check."""

    id: Id
    client_id: str = ""

    def names(self) -> tuple[str, ...]:
        """What ASSAY_GITHUB_APP_ID may call it."""
        return (str(self.id), self.client_id) if self.client_id else (str(self.id),)


class CheckRun(Payload):
    """The fields used; `external_id` is what we gave it, the key of its effect."""

    head_sha: Sha
    external_id: str | None = Field(None, max_length=1000)
    app: App | None = None


class RequestedAction(Payload):
    """The button that was pressed."""

    identifier: str = Field(max_length=100)


class CheckRunEvent(ActionPayload):
    """The fields used."""

    check_run: CheckRun
    requested_action: RequestedAction | None = None


@event("check_run", actions={"rerequested", "requested_action"})
def check_run(payload: bytes) -> ParsedEvent:
    """The handler finds out whether the check is ours, by the key of its effect."""
    fields = CheckRunEvent.model_validate_json(payload)
    pressed = fields.requested_action.identifier if fields.requested_action else ""
    intent = CheckIntent(
        **fields.intent_fields(),
        action=pressed or fields.action,
        head=fields.check_run.head_sha,
        external_id=fields.check_run.external_id or "",
        sender=fields.actor.login,
        app=fields.check_run.app.names() if fields.check_run.app else (),
    )
    return ParsedEvent(intents=(intent,))
