"""`ping`: GitHub tries out a new webhook."""

from __future__ import annotations

from bot.webhooks.events import ParsedEvent, event
from bot.webhooks.events.fields import Payload


class Ping(Payload):
    """The fields used."""

    hook_id: int
    zen: str = ""


@event("ping")
def ping(payload: bytes) -> ParsedEvent:
    """Nothing to do; that it arrived is the news."""
    return ParsedEvent(note=f"webhook {Ping.model_validate_json(payload).hook_id} works")
