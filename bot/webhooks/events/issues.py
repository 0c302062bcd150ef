"""`issues`: what people do with issues, of which some are ours."""

from __future__ import annotations

from bot.webhooks.events import ParsedEvent, event
from bot.webhooks.events.fields import ActionPayload, Number, Payload, Timestamp
from bot.webhooks.intents import IssueIntent


class Issue(Payload):
    """The fields used."""

    number: Number
    state: str
    state_reason: str | None = None
    updated_at: Timestamp


class Label(Payload):
    """The label that was put on."""

    name: str


class IssueEvent(ActionPayload):
    """The fields used."""

    issue: Issue
    label: Label | None = None


@event("issues", actions={"closed", "reopened", "deleted", "transferred", "labeled"})
def issues(payload: bytes) -> ParsedEvent:
    """The present state of the issue, ours or not."""
    fields = IssueEvent.model_validate_json(payload)
    intent = IssueIntent(
        **fields.intent_fields(),
        number=fields.issue.number,
        action=fields.action,
        sender=fields.actor.login,
        bot=fields.actor.is_bot,
        state=fields.issue.state,
        state_reason=fields.issue.state_reason or "",
        updated_at=fields.issue.updated_at,
        label=fields.label.name if fields.label else "",
    )
    return ParsedEvent(intents=(intent,))
