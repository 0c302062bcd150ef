"""`push`: somebody moved a branch or a tag."""

from __future__ import annotations

from pydantic import Field

from bot.webhooks.events import Meaning, event
from bot.webhooks.events.fields import Installation, Payload, Repository, Sha, is_zero
from bot.webhooks.intents import CampaignIntent


class Push(Payload):
    """The fields used; `before` is all zeros for a new branch, `after` for a deleted one."""

    ref: str = Field(min_length=1, max_length=1024)
    before: Sha
    after: Sha
    deleted: bool = False
    repository: Repository
    installation: Installation | None = None


@event("push")
def push(payload: bytes) -> Meaning:
    """A campaign for the new head of a branch, beside the commit it was at before."""
    fields = Push.model_validate_json(payload)
    if not fields.ref.startswith("refs/heads/"):
        return Meaning(note=f"{fields.ref} is not a branch", ignored=True)
    if fields.deleted or is_zero(fields.after):
        return Meaning(note=f"{fields.ref} was deleted", ignored=True)
    intent = CampaignIntent(
        target=fields.repository.full_name,
        head=fields.after,
        base="" if is_zero(fields.before) else fields.before,
        ref=fields.ref,
        trigger="push",
        installation=fields.installation.id if fields.installation else None,
    )
    return Meaning(intents=(intent,))
