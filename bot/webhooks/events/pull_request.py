"""`pull_request`: one was opened, changed or closed."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from bot.webhooks.events import ParsedEvent, event
from bot.webhooks.events.fields import (
    GHOST,
    Account,
    ActionPayload,
    Number,
    Payload,
    Repository,
    Sha,
    Timestamp,
)
from bot.webhooks.intents import PullIntent

#: What changes which commits are compared, or whether they are. `edited` does where it names another base.
ACTIONS = frozenset(
    {"opened", "synchronize", "reopened", "ready_for_review", "converted_to_draft", "closed", "edited"}
)


class Head(Payload):
    """What is to be merged; its repository is null once the fork is gone."""

    sha: Sha
    repo: Repository | None = None


class Base(Payload):
    """What it is to be merged into."""

    sha: Sha
    ref: str = Field(min_length=1, max_length=1024)


class PullRequest(Payload):
    """The fields used."""

    head: Head
    base: Base
    user: Account | None = None
    author_association: str = "NONE"
    draft: bool = False
    state: str
    merged: bool = False
    updated_at: Timestamp


class Changes(Payload):
    """What `edited` changed; `base` is there where the base branch is another one now."""

    base: dict[str, Any] | None = None


class PullRequestEvent(ActionPayload):
    """The fields used."""

    number: Number
    pull_request: PullRequest
    changes: Changes | None = None


@event("pull_request", actions=ACTIONS)
def pull_request(payload: bytes) -> ParsedEvent:
    """The pull request as it is now."""
    fields = PullRequestEvent.model_validate_json(payload)
    if fields.action == "edited" and (fields.changes is None or fields.changes.base is None):
        return ParsedEvent(note="edited, but not its base", ignored=True)
    pull = fields.pull_request
    intent = PullIntent(
        **fields.intent_fields(),
        number=fields.number,
        action=fields.action,
        head=pull.head.sha,
        base=pull.base.sha,
        base_ref=pull.base.ref,
        head_repository=pull.head.repo.full_name if pull.head.repo else "",
        author=pull.user.login if pull.user else GHOST,
        association=pull.author_association,
        draft=pull.draft,
        state="merged" if pull.merged else pull.state,
        updated_at=pull.updated_at,
    )
    return ParsedEvent(intents=(intent,))
