"""`workflow_run`: a workflow of GitHub Actions ended."""

from __future__ import annotations

from bot.webhooks.events import ParsedEvent, event
from bot.webhooks.events.fields import ActionPayload, Payload, Sha
from bot.webhooks.intents import CiIntent


class WorkflowRun(Payload):
    """The fields used."""

    head_sha: Sha


class WorkflowRunEvent(ActionPayload):
    """The fields used."""

    workflow_run: WorkflowRun


@event("workflow_run", actions={"completed"})
def workflow_run(payload: bytes) -> ParsedEvent:
    """The commit that it ran for."""
    fields = WorkflowRunEvent.model_validate_json(payload)
    return ParsedEvent(intents=(CiIntent(**fields.intent_fields(), head=fields.workflow_run.head_sha),))
