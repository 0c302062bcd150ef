"""`/assay mute` and `unmute`: not to hear of an operator for a while."""

from __future__ import annotations

from bot.commands import values
from bot.commands.asking import Asked, Receipt, refused
from bot.commands.grammar import Argument
from bot.commands.registry import action
from bot.reports import text
from bot.store import Session, mutes

_OPERATOR = Argument("op", "OPERATOR", values.glob, required=True)


@action(
    "mute",
    "Says nothing about an operator, or a pattern such as `Resize*`, until a day (2026-12-31) or for a time "
    "(30d). What is found is still counted and shown in reports.",
    _OPERATOR,
    Argument("until", "WHEN", values.word, required=True),
    Argument("reason", "REASON", str, rest=True),
)
def mute(session: Session, asked: Asked) -> Receipt:
    """Sets or moves a mute."""
    try:
        end = values.until(asked.values["until"], asked.at)
    except ValueError as error:
        return refused(f"`until` {error}.")
    operator, reason = asked.values["op"], asked.values.get("reason", "")
    mutes.add(session, asked.target, operator, end, asked.author, reason, asked.at)
    said = f"{operator} is muted until {end:%Y-%m-%d %H:%M} UTC"
    return Receipt(
        f"{text.code(operator)} is muted until {end:%Y-%m-%d %H:%M} UTC; "
        f"`/assay unmute op={operator}` ends it.",
        why=f"{said}: {reason}" if reason else said,
    )


@action("unmute", "Ends a mute.", _OPERATOR)
def unmute(session: Session, asked: Asked) -> Receipt:
    """Takes a mute off."""
    operator = asked.values["op"]
    if mutes.remove(session, asked.target, operator):
        return Receipt(why=f"{operator} is not muted any more")
    there = [one.operator for one in mutes.in_force(session, asked.target, asked.at)]
    listed = ", ".join(map(text.code, there)) or "none"
    return refused(f"{text.code(operator)} is not muted; muted are: {listed}.")
