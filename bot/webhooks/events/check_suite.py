"""`check_suite`: all our checks of a commit were requested again, or those of one App ended."""

from __future__ import annotations

from bot.webhooks.events import ParsedEvent, event
from bot.webhooks.events.check_run import App
from bot.webhooks.events.fields import ActionPayload, Payload, Sha
from bot.webhooks.intents import CheckIntent, CiIntent


class CheckSuite(Payload):
    """The fields used."""

    head_sha: Sha
    app: App | None = None


class CheckSuiteEvent(ActionPayload):
    """The fields used."""

    check_suite: CheckSuite


@event("check_suite", actions={"completed", "rerequested"})
def check_suite(payload: bytes) -> ParsedEvent:
    """The commit whose checks are to be done again, or are done."""
    fields = CheckSuiteEvent.model_validate_json(payload)
    if fields.action == "completed":
        return ParsedEvent(intents=(CiIntent(**fields.intent_fields(), head=fields.check_suite.head_sha),))
    intent = CheckIntent(
        **fields.intent_fields(),
        action=fields.action,
        head=fields.check_suite.head_sha,
        external_id="",
        sender=fields.actor.login,
        app=fields.check_suite.app.names() if fields.check_suite.app else (),
    )
    return ParsedEvent(intents=(intent,))
