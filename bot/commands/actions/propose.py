"""`/assay propose`: a regression test for the bug as a draft pull request."""

from __future__ import annotations

from bot.commands.command_context import CommandContext, CommandResult, refuse
from bot.commands.job_reply import NUMBER
from bot.commands.registry import BUG_THREADS, action
from bot.reports import text
from bot.store import Session, findings, proposals


@action(
    "propose",
    "Opens a draft pull request with a regression test for the bug, if `proposals.enabled` is set.",
    thread_kinds=BUG_THREADS,
)
def propose(session: Session, context: CommandContext) -> CommandResult:
    """Requests the job that writes and proves the test."""
    bug = context.bug
    assert bug is not None
    if not bug.case_id and not findings.case_of(session, bug.id):
        return refuse("No failing program is known here yet.")
    if why := proposals.ending(session, context.target, bug.signature):
        return refuse(text.plain(why))
    context.services.enqueue(
        session,
        "propose",
        context.target,
        f"propose:{bug.id}:{context.comment}:{context.position}",
        bug_id=bug.id,
        arguments={NUMBER: context.number},
        requested_by=context.author,
    )
    return CommandResult(in_progress=True, why="a regression test was requested", subject=f"bug:{bug.id}")
