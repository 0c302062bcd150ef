"""Replies to a comment with commands: a reaction, and one comment if a result has text."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from bot.commands.command_context import CommandResult, Reaction
from bot.github.limits import BODY_BUDGET, marker
from bot.reports import text
from bot.reports.report import idempotency_key
from bot.store import Session, outbox, targets
from bot.store.models import Command, CommandState
from bot.store.outbox import EffectDraft

REACTION, COMMENT = "reaction", "comment"
#: Replies are sent in every `reports.mode`: the user initiated them.
LIVE = "live"


def post(session: Session, row: Command, results: Sequence[CommandResult], at: datetime) -> None:
    """Posts the reply to a comment into the outbox; `row` is its first command."""
    drafts = [_draft_reaction(session, row, results)]
    if any(result.text for result in results):
        drafts.append(draft_comment(row.target, row.number, _key(session, row, COMMENT), _body(results)))
    outbox.post(session, drafts, campaign_id=None, issues_per_day=0, at=at)


def draft_comment(target: str, number: int, name: str, body: str) -> EffectDraft:
    """A reply; `name` is its idempotency key."""
    shown = text.cut(body, BODY_BUDGET)
    payload = {"body": f"{shown}\n\n{marker(name)}\n"}
    return EffectDraft(COMMENT, name, target, payload, number=number, urgent=True, mode=LIVE)


def _draft_reaction(session: Session, row: Command, results: Sequence[CommandResult]) -> EffectDraft:
    payload = {"content": _content(results).value, "comment": row.comment}
    name = _key(session, row, REACTION)
    return EffectDraft(REACTION, name, row.target, payload, number=row.number, urgent=True, mode=LIVE)


def _content(results: Sequence[CommandResult]) -> Reaction:
    if any(result.state is not CommandState.DONE for result in results):
        return Reaction.CONFUSED
    return Reaction.IN_PROGRESS if any(result.in_progress for result in results) else Reaction.DONE


def _body(results: Sequence[CommandResult]) -> str:
    return "\n\n".join(result.text for result in results if result.text)


def _key(session: Session, row: Command, kind: str) -> str:
    return idempotency_key(kind, targets.stable_name(session, row.target), "command", str(row.comment))
