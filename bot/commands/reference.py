"""Prints the table of commands for docs/commands.md: `python -m bot.commands.reference`."""

from __future__ import annotations

import sys

from bot.commands.command_context import ThreadKind
from bot.commands.registry import Action, RequiredRole, actions


def render_table() -> str:
    """A Markdown table of all commands: usage, help, kinds of thread, required role."""
    head = ["command", "what it does", "where", "who"]
    rows = [head, ["---"] * len(head), *(_row(action) for action in actions().values())]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _row(action: Action) -> list[str]:
    thread_kinds = (
        "everywhere"
        if len(action.thread_kinds) == len(ThreadKind)
        else ", ".join(sorted(thread_kind.value for thread_kind in action.thread_kinds))
    )
    who = (
        "write access"
        if action.required_role is RequiredRole.WRITER
        else "triage, or the pull request's author"
    )
    return [f"`{action.verb.usage}`", action.verb.help, thread_kinds, who]


if __name__ == "__main__":
    sys.stdout.write(render_table() + "\n")
