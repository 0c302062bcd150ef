"""`push`: somebody moved a branch or a tag."""

from __future__ import annotations

from pydantic import Field

from bot.store.campaigns import QUEUE
from bot.webhooks.events import Meaning, event
from bot.webhooks.events.fields import About, Account, Moment, Repository, Sha, is_zero
from bot.webhooks.intents import CampaignIntent

#: Branches that we make, for regression tests: they are tested as pull requests.
OURS = "refs/heads/assay/"


class Pushed(Repository):
    """The repository, and when it was last pushed to."""

    pushed_at: Moment | None = None


class Push(About):
    """The fields used; `before` is all zeros for a new branch, `after` for a deleted one."""

    ref: str = Field(min_length=1, max_length=1024)
    before: Sha
    after: Sha
    deleted: bool = False
    repository: Pushed
    sender: Account | None = None


@event("push")
def push(payload: bytes) -> Meaning:
    """A campaign for the new head of a branch, beside the commit it was at before."""
    fields = Push.model_validate_json(payload)
    why = _ignored(fields)
    if why:
        return Meaning(note=why, ignored=True)
    intent = CampaignIntent(
        **fields.common(),
        head=fields.after,
        base="" if is_zero(fields.before) else fields.before,
        ref=fields.ref,
        trigger="push",
        at=fields.repository.pushed_at,
    )
    return Meaning(intents=(intent,))


def _ignored(fields: Push) -> str:
    """Why nothing is done about this push; "" if something is."""
    if not fields.ref.startswith("refs/heads/"):
        return f"{fields.ref} is not a branch"
    if fields.deleted or is_zero(fields.after):
        return f"{fields.ref} was deleted"
    if fields.ref.startswith(QUEUE):
        return f"{fields.ref} is a merge queue's; its merge_group event asks for what is to be tested"
    if fields.ref.startswith(OURS) and fields.sender is not None and fields.sender.is_bot:
        return f"{fields.ref} is our own"
    return ""
