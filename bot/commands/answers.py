"""What a comment with commands is answered: a reaction, and one comment where there is something to say."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from bot.commands.asking import Reactions, Receipt
from bot.github.limits import BODY_BUDGET, marker
from bot.reports import text
from bot.reports.report import key
from bot.store import Session, outbox, targets
from bot.store.models import Command, CommandState
from bot.store.outbox import Draft

REACTION, COMMENT = "reaction", "comment"
#: Whoever asks is answered, whatever the target's mode: it was they who spoke first.
LIVE = "live"


def post(session: Session, row: Command, receipts: Sequence[Receipt], at: datetime) -> None:
    """Puts the answer to a comment into the outbox; `row` is its first command."""
    drafts = [_reaction(session, row, receipts)]
    if any(receipt.text for receipt in receipts):
        drafts.append(comment(row.target, row.number, _key(session, row, COMMENT), _body(receipts)))
    outbox.post(session, drafts, campaign_id=None, issues_per_day=0, at=at)


def comment(target: str, number: int, name: str, body: str) -> Draft:
    """A comment that answers somebody; `name` is its idempotency key."""
    shown = text.cut(body, BODY_BUDGET)
    payload = {"body": f"{shown}\n\n{marker(name)}\n"}
    return Draft(COMMENT, name, target, payload, number=number, urgent=True, mode=LIVE)


def _reaction(session: Session, row: Command, receipts: Sequence[Receipt]) -> Draft:
    payload = {"content": _content(receipts).value, "comment": row.comment}
    name = _key(session, row, REACTION)
    return Draft(REACTION, name, row.target, payload, number=row.number, urgent=True, mode=LIVE)


def _content(receipts: Sequence[Receipt]) -> Reactions:
    if any(receipt.state is not CommandState.DONE for receipt in receipts):
        return Reactions.CONFUSED
    return Reactions.AT_WORK if any(receipt.at_work for receipt in receipts) else Reactions.DONE


def _body(receipts: Sequence[Receipt]) -> str:
    """The texts of the receipts in the order of the commands."""
    return "\n\n".join(receipt.text for receipt in receipts if receipt.text)


def _key(session: Session, row: Command, kind: str) -> str:
    return key(kind, targets.known_as(session, row.target), "command", str(row.comment))
