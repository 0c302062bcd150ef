"""Stores the commands of a comment as rows, in the transaction of its delivery. Uses no network."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from bot.commands.grammar import parse
from bot.commands.registry import verbs
from bot.github.limits import MARKER_PREFIX
from bot.store import Session, campaigns, commands, now
from bot.store.models import Command, Pull
from bot.webhooks.intents import CommentIntent

#: In place of a commit id: the pull request changed when or after the comment was written.
NEWER_HEAD = "-"

log = structlog.get_logger(__name__)


def handle(session: Session, intent: CommentIntent, wake: Callable[[], None] | None = None) -> int:
    """Stores the comment's commands, invalid ones included; returns how many are new.

    Comments of programs are ignored, because two programs would answer each other for ever. So are comments
    with our marker, which are quoted or copied from ours. An edited comment counts if it held no command
    before. `wake` is called after the transaction commits.
    """
    if intent.bot or MARKER_PREFIX in intent.body:
        return 0
    if intent.edited and session.get(Command, (intent.comment, 0)) is not None:
        return 0
    pull = session.get(Pull, (intent.target, intent.number)) if intent.on_pull else None
    present = now()
    rows = [
        Command(
            comment=intent.comment,
            position=position,
            target=intent.target,
            number=intent.number,
            author=intent.author,
            text=given.text,
            head=_visible_head(pull, intent),
            delivery=intent.delivery,
            created_at=present,
        )
        for position, given in enumerate(parse(intent.body, verbs()))
    ]
    new = commands.store(session, rows)
    if new:
        log.info(
            "commands.stored", target=intent.target, number=intent.number, author=intent.author, count=new
        )
        if wake is not None:
            campaigns.after_commit(session, wake)
    return new


def _visible_head(pull: Pull | None, intent: CommentIntent) -> str:
    """The head that the author of the comment could see; NEWER_HEAD if it may be newer than the comment."""
    if pull is None:
        return ""
    if intent.written_at is not None and pull.head_at >= intent.written_at:
        return NEWER_HEAD
    return pull.head
