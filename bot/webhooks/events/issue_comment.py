"""`issue_comment`: a comment on an issue or pull request was written or edited.

New comments are read, and edited ones: a comment that held no command may hold one after the edit. Commands
of a comment that had some already are not carried out again (`bot.commands.comment_events`).
"""

from __future__ import annotations

import re
from typing import Any

from bot.webhooks.events import ParsedEvent, event
from bot.webhooks.events.fields import GHOST, Account, ActionPayload, Id, Number, Payload, Timestamp
from bot.webhooks.intents import CommentIntent

#: How everything ends that we publish (`bot.github.limits.marker`); in a quotation "> " stands before it.
_OWN_MARKER = re.compile(r"(?:^|\n)<!-- assay:[0-9A-Za-z:_-]+ -->\s*$")


class Issue(Payload):
    """What was commented on; `pull_request` is there where it is one."""

    number: Number
    pull_request: dict[str, Any] | None = None


class Comment(Payload):
    """The comment; its author is null where the account is gone."""

    id: Id
    user: Account | None = None
    author_association: str = "NONE"
    body: str
    created_at: Timestamp | None = None
    updated_at: Timestamp | None = None


class IssueComment(ActionPayload):
    """The fields used."""

    issue: Issue
    comment: Comment


@event("issue_comment", actions={"created", "edited"})
def issue_comment(payload: bytes) -> ParsedEvent:
    """A comment that may hold commands."""
    fields = IssueComment.model_validate_json(payload)
    if is_own_comment(fields.comment.body):
        return ParsedEvent(note="the comment is our own", ignored=True)
    edited = fields.action == "edited"  # by its author, or by anybody with write access
    author = fields.actor if edited else fields.comment.user or Account(login=GHOST)
    intent = CommentIntent(
        **fields.intent_fields(),
        comment=fields.comment.id,
        number=fields.issue.number,
        on_pull=fields.issue.pull_request is not None,
        author=author.login,
        bot=author.is_bot,
        association=fields.comment.author_association,
        body=fields.comment.body,
        edited=edited,
        written_at=fields.comment.updated_at if edited else fields.comment.created_at,
    )
    return ParsedEvent(intents=(intent,))


def is_own_comment(body: str) -> bool:
    """Whether a comment ends as ours do."""
    return _OWN_MARKER.search(body[-200:]) is not None
