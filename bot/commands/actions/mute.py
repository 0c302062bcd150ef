"""`/assay mute` and `unmute`: no reports about an operator for a while."""

from __future__ import annotations

from bot.commands import argument_types
from bot.commands.command_context import CommandContext, CommandResult, refuse
from bot.commands.grammar import Argument
from bot.commands.registry import action
from bot.reports import text
from bot.store import Session, mutes

_OPERATOR = Argument("op", "OPERATOR", argument_types.glob, required=True)


@action(
    "mute",
    "Mutes an operator, or a pattern such as `Resize*`, until a day (2026-12-31) or for a time (30d). "
    "Reports still count and show findings.",
    _OPERATOR,
    Argument("until", "WHEN", argument_types.non_empty, required=True),
    Argument("reason", "REASON", str, remainder=True),
)
def mute(session: Session, context: CommandContext) -> CommandResult:
    """Adds a mute, or changes the end of one."""
    try:
        end = argument_types.until(context.values["until"], context.at)
    except ValueError as error:
        return refuse(f"`until` {error}.")
    operator, reason = context.values["op"], context.values.get("reason", "")
    mutes.add(session, context.target, operator, end, context.author, reason, context.at)
    message = f"{operator} is muted until {end:%Y-%m-%d %H:%M} UTC"
    return CommandResult(
        f"{text.code(operator)} is muted until {end:%Y-%m-%d %H:%M} UTC; "
        f"`/assay unmute op={operator}` ends it.",
        why=f"{message}: {reason}" if reason else message,
    )


@action("unmute", "Ends a mute.", _OPERATOR)
def unmute(session: Session, context: CommandContext) -> CommandResult:
    """Removes a mute."""
    operator = context.values["op"]
    if mutes.remove(session, context.target, operator):
        return CommandResult(why=f"{operator} is no longer muted")
    there = [one.operator for one in mutes.in_force(session, context.target, context.at)]
    listed = ", ".join(map(text.code, there)) or "none"
    return refuse(f"{text.code(operator)} is not muted. Muted: {listed}.")
