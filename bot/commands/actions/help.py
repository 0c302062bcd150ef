"""`/assay help`: the list of commands."""

from __future__ import annotations

from bot.commands.command_context import CommandContext, CommandResult
from bot.commands.registry import RequiredRole, action, actions
from bot.store import Session


@action("help", "Lists the commands.", required_role=RequiredRole.READER)
def show_help(_session: Session, context: CommandContext) -> CommandResult:
    """Lists the commands that apply to this kind of thread."""
    here = [each for each in actions().values() if context.thread_kind in each.thread_kinds]
    rows = [f"| `{each.verb.usage}` | {each.verb.help} |" for each in here]
    return CommandResult("\n".join(["| command | what it does |", "| --- | --- |", *rows]))
