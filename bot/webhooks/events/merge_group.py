"""`merge_group`: a merge queue requests checks of a commit before it is merged."""

from __future__ import annotations

from pydantic import Field

from bot.webhooks.events import ParsedEvent, event
from bot.webhooks.events.fields import ActionPayload, Payload, Sha
from bot.webhooks.intents import MergeGroupIntent


class MergeGroup(Payload):
    """The fields used."""

    head_sha: Sha
    head_ref: str = Field(min_length=1, max_length=1024)
    base_sha: Sha


class MergeGroupEvent(ActionPayload):
    """The fields used."""

    merge_group: MergeGroup


@event("merge_group", actions={"checks_requested"})
def merge_group(payload: bytes) -> ParsedEvent:
    """What would be merged, and onto what."""
    fields = MergeGroupEvent.model_validate_json(payload)
    group = fields.merge_group
    intent = MergeGroupIntent(
        **fields.intent_fields(), head=group.head_sha, base=group.base_sha, ref=group.head_ref
    )
    return ParsedEvent(intents=(intent,))
