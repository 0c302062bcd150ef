"""A comment comes in: its commands become rows, in the transaction of the delivery. No network here."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from bot.commands.grammar import parse
from bot.commands.registry import verbs
from bot.github.limits import MARKER_PREFIX
from bot.store import Session, campaigns, commands, now
from bot.store.models import Command, Pull
from bot.webhooks.intents import CommentIntent

log = structlog.get_logger(__name__)


def handle(session: Session, intent: CommentIntent, wake: Callable[[], None] | None = None) -> int:
    """Stores the comment's commands, the mistakes among them too; how many are new.

    Programs are not listened to, ourselves among them: two of them would talk for ever. What bears our own
    mark was quoted or copied from us. `wake` is called once the transaction is committed.
    """
    if intent.bot or MARKER_PREFIX in intent.body:
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
            head=pull.head if pull is not None else "",
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
