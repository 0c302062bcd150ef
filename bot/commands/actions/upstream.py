"""`/assay upstream`: approves held reports for sending."""

from __future__ import annotations

from bot.bugs import issue_filing
from bot.commands.command_context import CommandContext, CommandResult, ThreadKind, refuse
from bot.commands.registry import action
from bot.reports.templates import pluralize
from bot.store import Session, bugs, outbox


@action(
    "upstream",
    "Approves the held report about this bug; on a pull request, all held reports of its campaign.",
    thread_kinds=frozenset({ThreadKind.BUG, ThreadKind.PULL}),
)
def approve_reports(session: Session, context: CommandContext) -> CommandResult:
    """Approves held effects. Issues are checked on the newest commit first."""
    held = outbox.held_about(
        session, context.target, bug_id=context.bug.id if context.bug else None, pull=context.number
    )
    if not held:
        return refuse("No report about this is held.")
    for effect in held:
        if effect.kind == outbox.ISSUE:
            bug = bugs.of_id(session, effect.bug_id)
            issue_filing.request_checks(
                session, effect.key, context.target, bug, context.at, context.author, context.number
            )
        else:
            outbox.approve(session, effect.key)
    return CommandResult(in_progress=True, why=f"{pluralize(len(held), 'report')} approved")
