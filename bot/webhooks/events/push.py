"""`push`: a branch or tag moved."""

from __future__ import annotations

from pydantic import Field

from bot.store.campaigns import MERGE_QUEUE_PREFIX
from bot.webhooks.events import ParsedEvent, event
from bot.webhooks.events.fields import Account, Repository, RepositoryPayload, Sha, Timestamp, is_zero
from bot.webhooks.intents import CampaignIntent

#: Branches that we make, for regression tests: they are tested as pull requests.
OWN_BRANCH_PREFIX = "refs/heads/assay/"


class PushedRepository(Repository):
    """The repository, and when it was last pushed to."""

    pushed_at: Timestamp | None = None


class Push(RepositoryPayload):
    """The fields used; `before` is all zeros for a new branch, `after` for a deleted one."""

    ref: str = Field(min_length=1, max_length=1024)
    before: Sha
    after: Sha
    deleted: bool = False
    repository: PushedRepository
    sender: Account | None = None


@event("push")
def push(payload: bytes) -> ParsedEvent:
    """A campaign for the new head of a branch, beside the commit it was at before."""
    fields = Push.model_validate_json(payload)
    why = _ignored(fields)
    if why:
        return ParsedEvent(note=why, ignored=True)
    intent = CampaignIntent(
        **fields.intent_fields(),
        head=fields.after,
        base="" if is_zero(fields.before) else fields.before,
        ref=fields.ref,
        trigger="push",
        at=fields.repository.pushed_at,
    )
    return ParsedEvent(intents=(intent,))


def _ignored(fields: Push) -> str:
    """Why nothing is done about this push; "" if something is."""
    if not fields.ref.startswith("refs/heads/"):
        return f"{fields.ref} is not a branch"
    if fields.deleted or is_zero(fields.after):
        return f"{fields.ref} was deleted"
    if fields.ref.startswith(MERGE_QUEUE_PREFIX):
        return f"{fields.ref} is a merge queue's; its merge_group event asks for what is to be tested"
    if fields.ref.startswith(OWN_BRANCH_PREFIX) and fields.sender is not None and fields.sender.is_bot:
        return f"{fields.ref} is our own"
    return ""
