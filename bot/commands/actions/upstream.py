"""`/assay upstream`: releases what is held, so that it is sent."""

from __future__ import annotations

from bot.bugs import issue_filing
from bot.commands.command_context import CommandContext, CommandResult, ThreadKind, refuse
from bot.commands.registry import action
from bot.reports.templates import pluralize
from bot.store import Session, bugs, outbox


@action(
    "upstream",
    "Releases the report that is held about this; on a pull request, all that its campaign holds.",
    thread_kinds=frozenset({ThreadKind.BUG, ThreadKind.PULL}),
)
def approve_reports(session: Session, context: CommandContext) -> CommandResult:
    """Lets held effects go out."""
    held = outbox.held_about(
        session, context.target, bug_id=context.bug.id if context.bug else None, pull=context.number
    )
    if not held:
        return refuse("Nothing is held about this.")
    for effect in held:
        if effect.kind == outbox.ISSUE:  # once more on the newest commit before it goes out
            bug = bugs.of_id(session, effect.bug_id)
            issue_filing.request_checks(
                session, effect.key, context.target, bug, context.at, context.author, context.number
            )
        else:
            outbox.approve(session, effect.key)
    return CommandResult(in_progress=True, why=f"{pluralize(len(held), 'report')} released")
